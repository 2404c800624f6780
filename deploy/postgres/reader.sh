#!/usr/bin/env bash
# Run once, when the database is created: adds the role for reads, which cannot write.
set -euo pipefail

psql --set=ON_ERROR_STOP=1 --quiet --no-psqlrc --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
    --set=password="$(cat /run/secrets/postgres-reader-password)" <<'SQL'
CREATE ROLE waypost_reader LOGIN PASSWORD :'password';
GRANT pg_read_all_data TO waypost_reader;
ALTER ROLE waypost_reader SET default_transaction_read_only = on;
SQL
