{{- define "ettwatch.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "ettwatch.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ettwatch.labels" -}}
{{ include "ettwatch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "ettwatch.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "ettwatch.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* Takes root, and tag: one of the part itself, while an upgrade goes step by step. */ -}}
{{- define "ettwatch.image" -}}
{{- $image := .root.Values.image -}}
{{- if .tag -}}
{{- printf "%s:%s" $image.repository .tag -}}
{{- else if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* The login at Kafka of one part: its own where it has one. Takes root and own. */ -}}
{{- define "ettwatch.sasl" -}}
{{- mergeOverwrite (deepCopy .root.Values.kafka.sasl) (default dict .own) | toJson -}}
{{- end -}}

{{- /* Variables for Kafka. Takes root and own. */ -}}
{{- define "ettwatch.kafkaEnv" -}}
{{- $kafka := .root.Values.kafka -}}
{{- $sasl := include "ettwatch.sasl" . | fromJson -}}
- name: ETTWATCH_KAFKA
  value: {{ required "kafka.bootstrap: say where the brokers are, host:port with commas between them" $kafka.bootstrap | quote }}
- name: ETTWATCH_KAFKA_SECURITY
  value: {{ $kafka.security | quote }}
- name: ETTWATCH_TOPIC_PREFIX
  value: {{ .root.Values.topics.prefix | quote }}
- name: ETTWATCH_PARTITIONS
  value: {{ .root.Values.topics.partitions | quote }}
{{- if $kafka.ca.secret }}
- name: ETTWATCH_KAFKA_CA
  value: /etc/ettwatch/kafka-ca/ca.crt
{{- end }}
{{- if hasPrefix "SASL" $kafka.security }}
- name: ETTWATCH_KAFKA_MECHANISM
  value: {{ $sasl.mechanism | quote }}
- name: ETTWATCH_KAFKA_USER
  value: {{ required "kafka.sasl.user: who logs in" $sasl.user | quote }}
- name: ETTWATCH_KAFKA_PASSWORD_FILE
  value: /etc/ettwatch/kafka-login/password
{{- end }}
{{- end -}}

{{- define "ettwatch.kafkaMounts" -}}
{{- if .root.Values.kafka.ca.secret }}
- {name: kafka-ca, mountPath: /etc/ettwatch/kafka-ca, readOnly: true}
{{- end }}
{{- if hasPrefix "SASL" .root.Values.kafka.security }}
- {name: kafka-login, mountPath: /etc/ettwatch/kafka-login, readOnly: true}
{{- end }}
{{- end -}}

{{- define "ettwatch.kafkaVolumes" -}}
{{- $sasl := include "ettwatch.sasl" . | fromJson -}}
{{- with .root.Values.kafka.ca }}
{{- if .secret }}
- name: kafka-ca
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    items: [{key: {{ .key | quote }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- if hasPrefix "SASL" .root.Values.kafka.security }}
- name: kafka-login
  secret:
    secretName: {{ required "kafka.sasl.secret: the Secret with the password of kafka.sasl.user" $sasl.secret }}
    defaultMode: 0440
    items: [{key: {{ $sasl.key | quote }}, path: password}]
{{- end }}
{{- end -}}

{{- /* Variables for ClickHouse. Takes root and own, with user and secret. */ -}}
{{- define "ettwatch.clickhouseEnv" -}}
{{- $there := .root.Values.clickhouse -}}
- name: ETTWATCH_CLICKHOUSE
  value: {{ printf "%s://%s@%s:%d/%s" (ternary "https" "http" $there.tls) .own.user (required "clickhouse.host: say where ClickHouse is" $there.host) (int $there.port) $there.database | quote }}
{{- if .own.secret }}
- name: ETTWATCH_CLICKHOUSE_PASSWORD_FILE
  value: /etc/ettwatch/clickhouse-login/password
{{- end }}
{{- if $there.ca.secret }}
- name: ETTWATCH_CLICKHOUSE_CA
  value: /etc/ettwatch/clickhouse-ca/ca.crt
{{- end }}
{{- end -}}

{{- define "ettwatch.clickhouseMounts" -}}
{{- if .own.secret }}
- {name: clickhouse-login, mountPath: /etc/ettwatch/clickhouse-login, readOnly: true}
{{- end }}
{{- if .root.Values.clickhouse.ca.secret }}
- {name: clickhouse-ca, mountPath: /etc/ettwatch/clickhouse-ca, readOnly: true}
{{- end }}
{{- end -}}

{{- define "ettwatch.clickhouseVolumes" -}}
{{- if .own.secret }}
- name: clickhouse-login
  secret:
    secretName: {{ .own.secret }}
    defaultMode: 0440
    items: [{key: {{ .own.key | quote }}, path: password}]
{{- end }}
{{- with .root.Values.clickhouse.ca }}
{{- if .secret }}
- name: clickhouse-ca
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    items: [{key: {{ .key | quote }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- end -}}

{{- /* What every pod has. Takes root, and job: one that runs before the service account of the chart is there. */ -}}
{{- define "ettwatch.pod" -}}
serviceAccountName: {{ if and .job .root.Values.serviceAccount.create }}default{{ else }}{{ include "ettwatch.serviceAccount" .root }}{{ end }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext: {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- end -}}

{{- define "ettwatch.container" -}}
image: {{ include "ettwatch.image" . | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext: {{- toYaml .root.Values.containerSecurityContext | nindent 2 }}
{{- end -}}

{{- /* Where a pod runs. Takes root, own and part. Pods of one part spread over nodes and zones, if they can. */ -}}
{{- define "ettwatch.place" -}}
{{- with .own.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .own.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "ettwatch.selector" $.root | nindent 8 }}
        app.kubernetes.io/component: {{ $.part }}
{{- end }}
{{- end -}}

{{- /* Alive and ready. A worker that reads its state at the start is alive and not ready, however long that takes. */ -}}
{{- define "ettwatch.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: web}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: web}
  periodSeconds: 15
  timeoutSeconds: 5
  failureThreshold: 8
readinessProbe:
  httpGet: {path: /readyz, port: web}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
{{- end -}}
