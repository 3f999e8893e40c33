#!/usr/bin/env bash
# Prepares a deployment for the golden files: a plan, accounts, keys, workers, the catalog. It prints the variables that the
# golden suite takes its keys and tokens from:
#
#	export BASE_URL=http://127.0.0.1:8080/external-api-v1
#	eval "$(AIV=./aiv testdata/golden/setup.sh)"
#	go test ./gateway -run Golden -base-url $BASE_URL -worker-url http://127.0.0.1:8081
#
# Without -worker-url, the files that need workers are left out.
#
# The database is the one that aiv finds: DATABASE_URL, else the private PostgreSQL in AIV_DATA_DIR. Its catalog must have no other
# models or shared questions, because the files show whole lists. Run it before each run of the suite, which expects new keys and
# accounts without runs of the month.
set -euo pipefail
: "${BASE_URL:?is not set; it is the address of the gateway, such as http://127.0.0.1:8080/external-api-v1}"
aiv=${AIV:-aiv}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export AIV_ACTOR=golden

member() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
account() { # NAME PLAN
  local found; found=$("$aiv" accounts list -json | grep -o "{[^{}]*\"name\":\"$1\"[^{}]*}" | head -n 1 || true)
  [ -n "$found" ] || found=$("$aiv" accounts create -name "$1" -plan "$2" -json)
  member id <<<"$found"
}
credential= made=
key() { # NAME ACCOUNT SCOPES RATE [FLAGS]
  made=$("$aiv" keys create -account "$2" -name "golden $1" -scopes "$3" -rate "$4" -json "${@:5}")
  credential=$(member id <<<"$made")
  echo "export AIV_GOLDEN_KEY_$(tr a-z A-Z <<<"$1")=$(member key <<<"$made")"
}

"$aiv" plans set golden -features api_access >&2
"$aiv" plans set golden-web -features dashboard >&2
main=$(account golden golden) other=$(account "golden other" golden) web=$(account "golden web" golden-web)
# The lists of these accounts contain only what one run of the golden files creates.
pages=$("$aiv" accounts create -name "golden pages" -plan golden -json | member id)
filters=$("$aiv" accounts create -name "golden filters" -plan golden -json | member id)
quota=$("$aiv" accounts create -name "golden quota" -plan golden -json | member id)
usage=$("$aiv" accounts create -name "golden usage" -plan golden -json | member id)
hooks=$("$aiv" accounts create -name "golden hooks" -plan golden -json | member id)
events=$("$aiv" accounts create -name "golden events" -plan golden -json | member id)
brands=$("$aiv" accounts create -name "golden brands" -plan golden -json | member id)
brand_lists=$("$aiv" accounts create -name "golden brand lists" -plan golden -json | member id)
questions=$("$aiv" accounts create -name "golden questions" -plan golden -json | member id)
schedules=$("$aiv" accounts create -name "golden schedules" -plan golden -json | member id)
schedule_lists=$("$aiv" accounts create -name "golden schedule lists" -plan golden -json | member id)
for account in "$quota" "$usage"; do "$aiv" accounts set-quota "$account" -jobs-per-month 12 >&2; done

all=runs:read,runs:write,recommendations:read,alerts:read,webhooks:manage
key full "$main" "$all" 100000
full=$(member key <<<"$made")
key reader "$main" runs:read 1000
key webhooks "$main" webhooks:manage 1000
key limited "$main" "$all" 1
key no_access "$web" "$all" 1000
key other "$other" "$all" 1000
key pages "$pages" "$all" 1000
key filters "$filters" "$all" 1000
key quota "$quota" "$all" 1000
key usage "$usage" "$all" 1000
key hooks "$hooks" "$all" 1000
key events "$events" "$all" 1000
key brands "$brands" "$all" 1000
key brand_lists "$brand_lists" "$all" 1000
key questions "$questions" "$all" 1000
# Each of these accounts is of one file about metrics, sources or results, which creates its brands.
fresh() { "$aiv" accounts create -name "$1" -plan golden -json | member id; }
key tools "$(fresh "golden tools")" "$all" 1000
key limited_tools "$main" "$all" 1
key metrics "$(fresh "golden metrics")" "$all" 1000
key groups "$(fresh "golden groups")" "$all" 1000
key days "$(fresh "golden days")" "$all" 1000
key csv "$(fresh "golden csv")" "$all" 1000
key no_brands "$(fresh "golden no brands")" "$all" 1000
key compare "$(fresh "golden compare")" "$all" 1000
key windows "$(fresh "golden windows")" "$all" 1000
key rows "$(fresh "golden rows")" "$all" 1000
key sources "$(fresh "golden sources")" "$all" 1000
key answers "$(fresh "golden answers")" "$all" 1000
key schedules "$schedules" "$all" 1000
key schedule_lists "$schedule_lists" "$all" 1000
key hooks_only "$hooks" webhooks:manage 1000
key writer "$main" runs:write 1000
key revoked "$main" "$all" 1000
"$aiv" keys revoke "$credential" >&2
key disabled "$main" "$all" 1000
"$aiv" keys disable "$credential" >&2
key expired "$main" "$all" 1000 -expires "$(date -u -d '+2 seconds' +%Y-%m-%dT%H:%M:%SZ)"
key rotated_old "$main" "$all" 1000
echo "export AIV_GOLDEN_KEY_ROTATED_NEW=$("$aiv" keys rotate "$credential" -grace 1h -json | member key)"

sed "s/{account:other}/$other/" "$here/catalog.jsonl" | "$aiv" catalog import - >&2
for dependency in configuration secret contract legal_approval; do
  "$aiv" providers met ready "$dependency" -note golden >&2
  "$aiv" providers met worked "$dependency" -note golden >&2
done
for dependency in configuration secret; do "$aiv" providers met pending "$dependency" -note golden >&2; done
worker() { # NAME PROVIDER
  made=$("$aiv" workers create -name "golden $1" -providers "$2" -json)
  echo "export AIV_GOLDEN_WORKER_$(tr a-z A-Z <<<"$1")=$(member token <<<"$made")"
}
worker main worked
worker elsewhere pending
worker revoked worked
"$aiv" workers revoke "$(member id <<<"$made")" >&2

run=$(curl -sSf "$BASE_URL/v1/runs" -H "Authorization: Bearer $full" -H "Content-Type: application/json" \
  -H "Idempotency-Key: golden-insights" -d '{"model_ids":["golden/all"],"question_ids":["golden-q1"],"repetitions":1,
    "measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}' | member id)
sed "s/{account:main}/$main/; s/{account:other}/$other/; s/{run}/$run/" "$here/insights.jsonl" | "$aiv" insights import - >&2
sleep 2 # until the expired key has expired
