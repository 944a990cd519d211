# What kubectl can be asked for, kind by kind; and what is refused, with which words.
# Sourced by tests/kubectl/run.

# The plane has room for four tasks of five: the gang's reasons are looked at here, too.
up --ephemeral --node-cpu 450m --port 0 || exit 1

# ── a gang that waits ─────────────────────────────────────────────────────────────────────────
says "apply of the example" "job.batch.volcano.sh/training created" k apply -f examples/training-gang.yaml
needs volcano
eventually "describe vcjob says the missing room" "Unschedulable.*4 of 5 tasks fit: worker-3 needs 100m cpu, node-1 has 50m left" \
  k describe vcjob training
eventually "describe podgroup says the same" "4 of 5 tasks fit: worker-3 needs 100m cpu, node-1 has 50m left" k describe podgroup
says "podgroups have upstream's columns" "NAME +STATUS +MINMEMBER +RUNNINGS +AGE" k get podgroups
says "queues can be told apart by their parent" "research +root" k get queues
says "no task of it was placed" "^$" k get pods -o jsonpath='{.items[*].spec.nodeName}'
says "a vcjob can be described by vcctl" "Unschedulable" katmai vcctl --kubeconfig "$state/kubeconfig" job view -N training
"$KATMAI" vcctl --kubeconfig "$state/kubeconfig" queue list --watch -o json > "$home/followed" 2>&1 < /dev/null & following=$!
eventually "vcctl follows a list as documents" '"name": "default"' cat "$home/followed"
k create -f - > /dev/null <<< '{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"followed"},"spec":{"weight":7}}'
eventually "what is new comes as one of its own" '"weight": 7' cat "$home/followed"
k delete queue followed > /dev/null
kill "$following"; wait "$following" 2> /dev/null

needs nothing
# ── every kind ────────────────────────────────────────────────────────────────────────────────
k create configmap words --from-literal=a=b > /dev/null
k create service clusterip door --tcp=80:8080 > /dev/null
k create job waits --image=busybox -- true > /dev/null
for kind in nodes namespaces pods services configmaps secrets persistentvolumeclaims events jobs.batch \
  queues vcjob podgroups; do
  says "explain $kind" "FIELDS:" k explain "$kind"
  says "get $kind as a table, wide, names, YAML and JSON" "as JSON a List" bash -c '
    set -e; k() { "$KUBECTL" --kubeconfig "$0" "$@"; }
    k get "$1"; k get "$1" -o wide; k get "$1" -o name
    k get "$1" -o yaml | grep -q "^kind: List"
    [ "$(k get "$1" -o jsonpath="{.kind}")" = List ] && echo as JSON a List' "$state/kubeconfig" "$kind"
  says "auth can-i delete $kind" "^yes" k auth can-i delete "$kind"
done
for kind in node/node-1 namespace/default service/door configmap/words pvc/training-results job/waits \
  queue/research vcjob/training; do
  says "label, annotate, patch and describe $kind" "colour=red" bash -c '
    set -e; k() { "$KUBECTL" --kubeconfig "$0" "$@"; }
    k label "$1" colour=blue --overwrite > /dev/null
    k label "$1" colour=red --overwrite > /dev/null
    k annotate "$1" why=because > /dev/null
    k patch "$1" --type merge -p "{\"metadata\":{\"annotations\":{\"a\":\"b\"}}}" > /dev/null
    k patch "$1" --type json -p "[{\"op\":\"remove\",\"path\":\"/metadata/annotations/a\"}]" > /dev/null
    k describe "$1" | sed -n 1,30p' "$state/kubeconfig" "$kind"
done
says "get all" "job.batch/waits" k get all
needs volcano
says "events" "Unschedulable" k events
needs nothing
says "describe node counts what is asked for" "Allocated resources" k describe node node-1
says "get by several kinds at once" "persistentvolumeclaim/training-results" k get queues,vcjob,podgroups,pvc
says "diff of nothing is nothing" "^$" k diff -f examples/training-gang.yaml
says "cordon" "cordoned" k cordon node-1
says "a cordoned node says so" "SchedulingDisabled" k get nodes
says "uncordon" "uncordoned" k uncordon node-1
says "cluster-info" "is running at" k cluster-info

# ── what is not there ─────────────────────────────────────────────────────────────────────────
expect "what is missing is told as the real server tells it" 1 \
  'Error from server \(NotFound\): jobs.batch.volcano.sh "nothing" not found' k get vcjob nothing
expect "a kind that does not exist" 1 "the server doesn't have a resource type" k get frobs
expect "a name that is not allowed" 1 'metadata.name: Invalid value: "UPPER"' k create configmap UPPER
expect "rollout of what does not exist" 1 "not found" k rollout status deployment/none
expect "metrics are not served" 1 "Metrics API not available" k top nodes

needs volcano
# ── waiting writes nothing ────────────────────────────────────────────────────────────────────
k delete job waits > /dev/null
k create -f examples/late-claim.yaml > /dev/null
eventually "a job whose claim is missing says so" "dataset" k get vcjob late -o jsonpath='{.status.state.message}'
version() { k get vcjob late -o jsonpath='{.metadata.resourceVersion}'; }
was=$(version)
says "some time passes" "^$" bash -c 'timeout 2 tail -f /dev/null; true'
says "meanwhile nothing was written to it" "^$was$" version
