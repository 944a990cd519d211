# Nothing is lost, nothing is left: kill -9 under a writing client, and a full disk.
# Sourced by tests/kubectl/run. ROUNDS=100 does the first one a hundred times.

needs plane || { leave_out; return 0; }

rounds=${ROUNDS:-4}
acknowledged=$home/acknowledged
: > "$acknowledged"

# Sleeps of the job below, whoever's children they are. The number is nobody else's.
sleepers() { pgrep -fc "^sleep 6$$7" || true; }

cat > "$home/crash.yaml" <<Y
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: steady}
spec:
  minAvailable: 2
  schedulerName: volcano
  plugins: {svc: [], env: []}
  volumes:
  - {mountPath: /scratch, volumeClaim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}
  tasks:
  - name: a
    replicas: 2
    template:
      spec:
        restartPolicy: OnFailure
        containers: [{name: a, image: busybox, command: [sleep, "6$$7"]}]
Y

write_until_killed() {
  local round=$1 at=0
  while kill -0 "$plane" 2> /dev/null; do
    at=$((at + 1))
    k create configmap "kept-$round-$at" --from-literal=a=b > /dev/null 2>&1 && echo "kept-$round-$at" >> "$acknowledged"
  done
}

up || exit 1
k create -f "$home/crash.yaml" > /dev/null
eventually "a job with a volume of its own runs" "^2$" sleepers
for round in $(seq "$rounds"); do
  write_until_killed "$round" &
  writer=$!
  sleep "0.$((RANDOM % 9))$((RANDOM % 9))"
  kill -9 "$plane"; wait "$plane" 2> /dev/null
  wait "$writer"
  eventually "round $round: no process of a killed plane stays" "^0$" sleepers
  up || exit 1
  k get configmaps -o name | sed 's,.*/,,' | sort > "$home/there"
  says "round $round: every acknowledged write is there" "^nothing is lost" \
    bash -c 'lost=$(sort "$0" | comm -23 - "$1"); [ -z "$lost" ] && echo "nothing is lost" || echo "lost: $lost"' "$acknowledged" "$home/there"
  eventually "round $round: the job's tasks run again" "^2$" sleepers
  says "round $round: no second child of anything" "^2 pods, 1 claims, 1 services$" \
    bash -c 'n() { "$KUBECTL" --kubeconfig "$0" get "$1" -o name | grep -c steady; }
      echo "$(n pods) pods, $(n pvc) claims, $(n services) services"' "$state/kubeconfig"
done
says "writes were acknowledged between the kills" "^[1-9]" wc -l "$acknowledged"
down
eventually "no process stays after down" "^0$" sleepers

# ── a full disk ───────────────────────────────────────────────────────────────────────────────
cat > "$home/full" <<'S'
set -u
mount -t tmpfs -o size=24m katmai-full "$1" || exit 77
"$2" up --data-dir "$1" > "$3/full.out" 2> "$3/full.err" &
plane=$!
for _ in $(seq 100); do grep -q KUBECONFIG= "$3/full.out" && break; kill -0 $plane 2> /dev/null || { cat "$3/full.err"; exit 1; }; sleep 0.05; done
k() { "$KUBECTL" --kubeconfig "$1/kubeconfig" "${@:2}"; }
k "$1" create configmap before --from-literal=a=b
dd if=/dev/zero of="$1/ballast" bs=64k 2> /dev/null
head -c 400000 /dev/zero | tr '\0' x > "$3/large"
for at in $(seq 40); do k "$1" create configmap "large-$at" --from-file="$3/large" || break; done
k "$1" get configmap before
rm "$1/ballast"
for _ in $(seq 50); do k "$1" create configmap after --from-literal=a=b && break; sleep 0.2; done
kill $plane; wait $plane
S
mkdir -p "$home/full-disk"
out=$(timeout 120 unshare -m bash "$home/full" "$home/full-disk" "$KATMAI" "$home" 2>&1); code=$?
if [ "$code" -eq 77 ] || grep -q "unshare failed" <<< "$out"; then
  skip "a full disk makes the plane read-only" "no private mount can be made here"
else
  says "a full disk refuses writes with a clear message" "the plane is read-only until its journal can be written again" echo "$out"
  says "reads go on while the disk is full" "^before +1" echo "$out"
  says "writes go on when there is room again" "configmap/after created" echo "$out"
fi
