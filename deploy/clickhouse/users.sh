#!/bin/sh
# Make the users of users.sql with the passwords of files. The ClickHouse image runs it when its volume is new; it can be
# run again at any time to change a password:
#   docker compose -f deploy/compose.yaml exec clickhouse sh /docker-entrypoint-initdb.d/10-users.sh
# SECRETS: the folder of the passwords. SQL: that of the statements. Where CLIENT is set, it takes them on its input.
set -eu
SECRETS=${SECRETS:-/run/secrets}
SQL=${SQL:-/etc/ettwatch}

digest() {
  if [ ! -s "$SECRETS/clickhouse-$1" ]; then
    echo "users.sh: $SECRETS/clickhouse-$1 is missing or empty; deploy/secrets.sh makes it" >&2
    exit 1
  fi
  # A newline at the end belongs to the file and not to the password, as in ettwatch itself.
  printf '%s' "$(cat "$SECRETS/clickhouse-$1")" | sha256sum | cut -c1-64
}

migrate=$(digest migrate)
sink=$(digest sink)
reader=$(digest reader)
CLICKHOUSE_PASSWORD=$(cat "$SECRETS/clickhouse-admin")
export CLICKHOUSE_PASSWORD
sed -e "s/@MIGRATE@/$migrate/" -e "s/@SINK@/$sink/" -e "s/@READER@/$reader/" "$SQL/roles.sql" "$SQL/users.sql" |
  ${CLIENT:-clickhouse-client --host 127.0.0.1 --user admin --multiquery}
