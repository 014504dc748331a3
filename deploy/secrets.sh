#!/bin/sh
# Make the passwords that deploy/compose.yaml reads, each in a file of its own. What is there stays as it is.
# The folder is for its owner only. The files in it are readable, since the users inside the containers are others.
set -eu
folder=${1:-$(dirname "$0")/secrets}
umask 077
mkdir -p "$folder"
chmod 700 "$folder"
for name in clickhouse-admin clickhouse-migrate clickhouse-sink clickhouse-reader grafana-admin; do
  [ -s "$folder/$name" ] && continue
  head -c 24 /dev/urandom | base64 | tr -d '\n' | tr '+/' '-_' >"$folder/$name"
  chmod 444 "$folder/$name"
  echo "made $folder/$name"
done
# Where alerts go: the address of a webhook that takes Slack's format. Until it is set, alerts are seen in Alertmanager only.
for name in alert-page alert-ticket; do
  [ -s "$folder/$name" ] && continue
  printf 'http://127.0.0.1:9/' >"$folder/$name"
  chmod 444 "$folder/$name"
  echo "made $folder/$name: put the address of your webhook into it"
done
