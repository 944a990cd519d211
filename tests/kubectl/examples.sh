# The examples that somebody has to ask, tell or wait for something; `.ci/run` runs the others. Sourced by
# tests/kubectl/run.

needs commands || { leave_out; return 0; }

# A flag that shapes a plane asks for one of its own.
alone() { katmai run --port 0 --timeout 60s "$@"; }
# waits WHAT CONDITION: until the condition of kubectl wait holds.
waits() { k wait "$1" --for="$2" --timeout=30s; }
# told OBJECT PATH
told() { k get "$1" -o jsonpath="$2"; }

# ── recipes of docs/discovery.md (S2.9), and pods that wait for each other (S2.5) ─────────────
says "S2.9: a start script that tries again finds who comes later" "retry-coordinator-0.retry is found after [1-9]" alone examples/discovery/retry.yaml
says "S2.9: what is ready by its probe can be found at once" "client-0 \| ready-server-2.ready says: server 2" alone examples/discovery/ready.yaml
says "S2.5: two pods that are ready when they have found each other both become so" "both-0 \| both found each other" alone examples/discovery/mutual.yaml
says "S2.10: two pods find each other by the addresses that the job tells" "peer-0 \| [0-9.]+ says: peer 1" alone examples/discovery/no-dns.yaml
sed 's/svc: \[\]/svc: ["--publish-not-ready-addresses=false"]/' examples/discovery/mutual.yaml > "$home/never.yaml"
expect "S2.5: where the job hides who is not ready, they do not" 3 "vcjob/mutual +Running" katmai run --port 0 --timeout 5s "$home/never.yaml"

# ── what is refused ───────────────────────────────────────────────────────────────────────────
expect "two policies for an event" 2 "duplicate event PodFailed" alone examples/invalid/policy-twice.yaml
expect "two tasks of a name" 2 "duplicated task name main" alone examples/invalid/task-twice.yaml
expect "a gang larger than its tasks" 2 "'minAvailable' should not be greater than total replicas in tasks" alone examples/invalid/too-many-wanted.yaml

# ── queues below queues ───────────────────────────────────────────────────────────────────────
says "a department's limit binds the queues below it" "waits: .*queue telescope has too little cpu left" \
  alone --simulated-nodes 2 --scheduler-conf examples/queues/scheduler.conf examples/queues/institute.yaml examples/queues/institute-jobs.yaml

# ── by command, by number, by the clock ───────────────────────────────────────────────────────
up || exit 1
export KUBECONFIG=$state/kubeconfig
expect "kubectl is told the same of what is refused" 1 'denied the request: duplicated task name main' k apply -f examples/invalid/task-twice.yaml
sed 's/"\* \* \* \* \*"/"@every 2s"/' examples/cron.yaml > "$home/often.yaml"
says "a cron job" "heartbeat created" k apply -f "$home/often.yaml"
says "the pausable job" "counting created" k apply -f examples/commands/pausable.yaml
eventually "it counts" "^[1-9]" k exec counting-counter-0 -- cat /counted/at
says "vsuspend" "^$|successfully" katmai vsuspend -n counting
says "stops it" "condition met" waits vcjob/counting jsonpath='{.status.state.phase}'=Aborted
says "its pod is gone" "^No resources found" k get pods -l volcano.sh/job-name=counting
says "vresume" "^$|successfully" katmai vresume -n counting
says "lets it go on to its end" "condition met" waits vcjob/counting jsonpath='{.status.state.phase}'=Completed
says "from where it was" "I count from [1-9]" k logs counting-counter-0
# guests COUNT
guests() { k patch vcjob crowd --type json -p '[{"op": "replace", "path": "/spec/tasks/1/replicas", "value": '"$1"'}]'; }
says "the elastic job" "crowd created" k apply -f examples/commands/elastic.yaml
eventually "two guests find their host" "2 are here: crowd-guest-0, crowd-guest-1$" k logs crowd-host-0
says "more are asked for" "patched" guests 5
eventually "five find it" "5 are here: .*crowd-guest-4$" k logs crowd-host-0
says "fewer are asked for" "patched" guests 2
says "the last ones go, and the host is content" "condition met" waits vcjob/crowd jsonpath='{.status.state.phase}'=Completed
says "it says who stayed" "2 are here: crowd-guest-0, crowd-guest-1$" k logs crowd-host-0
eventually "the cron job has made a job by now, which completed" "^heartbeat-[0-9]+ +Completed" k get vcjob -l app=heartbeat
k delete -f "$home/often.yaml" --wait=false > /dev/null

# ── pods that wait for their peers in front of their own containers (S2.6) ─────────────────────
says "a gang whose pods wait for each other" "waiting created" k apply -f examples/discovery/waiting.yaml
says "S2.6: all find each other at the first look" "condition met" waits vcjob/waiting jsonpath='{.status.state.phase}'=Completed
says "it says so" "I know all 3 of us" k logs waiting-peer-2
says "S2.6: each has waited, and in vain has none" "^(wait-for-peers Completed ){3}$" told pods '{range .items[?(@.metadata.labels.volcano\.sh/job-name=="waiting")]}{.status.initContainerStatuses[0].name} {.status.initContainerStatuses[0].state.terminated.reason} {end}'
says "so it says nothing" "^$" k logs waiting-peer-0 -c wait-for-peers
k delete -f examples/discovery/waiting.yaml --wait=false > /dev/null

# ── a Deployment of a queue ───────────────────────────────────────────────────────────────────
says "a deployment with its queue" "deployment.apps/greeter created" k apply -f examples/pods/deployment.yaml
says "is rolled out" "successfully rolled out" k rollout status deployment/greeter --timeout=30s
says "and found by its Service" "^greeter-" k exec deploy/greeter -- python3 -c 'import urllib.request; print(urllib.request.urlopen("http://greeter/hostname", timeout=10).read().decode())'
says "its pods are one group of the queue" "^services$" told podgroups '{.items[?(@.metadata.ownerReferences[0].kind=="ReplicaSet")].spec.queue}'
says "more than the queue has room for" "scaled" k scale deployment/greeter --replicas=5
says "three run" "condition met" waits deployment/greeter jsonpath='{.status.readyReplicas}'=3
eventually "two are told why they wait" "(queue services has 0 left of its share.*){2}" told pods '{.items[*].status.conditions[?(@.type=="PodScheduled")].message}'
k delete -f examples/pods/deployment.yaml --wait=false > /dev/null

# ── workflows ─────────────────────────────────────────────────────────────────────────────────
says "kinds of another platform" "workflows.argoproj.io created" k apply -f examples/frameworks/argo-kinds.yaml
says "are served" "condition met" waits crd/workflowtemplates.argoproj.io condition=Established
says "steps of workflows are vcjobs" "workflow greeting has succeeded" katmai run --data-dir "$state" --timeout 60s examples/frameworks/argo.yaml
says "which workflows know" "^Succeeded Succeeded$" told workflows '{.items[*].status.phase}'
down

# ── priorities ────────────────────────────────────────────────────────────────────────────────
up --ephemeral --port 0 --node-cpu 1 --scheduler-conf examples/pods/preempt.conf || exit 1
says "replica sets that fill the node" "replicaset.apps/batch created" k apply -f examples/pods/replica-sets.yaml
says "batch is there" "condition met" waits replicaset/batch jsonpath='{.status.readyReplicas}'=3
says "web is there" "condition met" waits replicaset/web jsonpath='{.status.readyReplicas}'=2
says "an important one" "replicaset.apps/urgent created" k apply -f examples/pods/urgent.yaml
says "gets room" "condition met" waits replicaset/urgent jsonpath='{.status.readyReplicas}'=2
eventually "from the least important one, and from nobody else" "^batch=1 urgent=2 web=2 $" told replicasets '{range .items[*]}{.metadata.name}={.status.readyReplicas} {end}'
down

# ── nodes divided between schedulers ──────────────────────────────────────────────────────────
up --ephemeral --port 0 --simulated-nodes 4 --scheduler-sharding-mode hard || exit 1
k create namespace volcano-system > /dev/null
k label node sim-node-3 node.volcano.sh/warmup=true > /dev/null
says "how nodes are divided" "created" k apply -f examples/sharding.yaml
"$KATMAI" controllers --controllers=sharding-controller > "$home/sharding.out" 2>&1 & sharding=$!
"$KATMAI" agent-scheduler --scheduler-sharding-mode hard > "$home/agent.out" 2>&1 & agent=$!
eventually "one scheduler has three nodes, a warm one among them" '^\["node-1","sim-node-0","sim-node-3"\]$' told nodeshard/volcano '{.spec.nodesDesired}'
eventually "the other one has the rest" '^\["sim-node-1","sim-node-2"\]$' told nodeshard/agent-scheduler '{.spec.nodesDesired}'
# alike SCHEDULER: six pods that name it.
alike() {
  for number in 1 2 3 4 5 6; do
    printf -- '---\n{apiVersion: v1, kind: Pod, metadata: {name: %s-%s, labels: {by: %s}}, spec: {schedulerName: %s, containers: [{name: a, image: busybox, command: [sleep, "600"], resources: {requests: {cpu: 10m}}}]}}\n' "$1" "$number" "$1" "$1"
  done
}
places() { k get pods -l by="$1" -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | tr '\n' ' '; }
given "$(alike volcano; alike agent-scheduler)" apply > /dev/null
says "all pods run" "condition met" k wait --for=condition=Ready pod --all --timeout=30s
says "the one places on its nodes" "^(node-1 )?(sim-node-0 )?(sim-node-3 )?$" places volcano
says "and the other one on its own" "^(sim-node-1 )?(sim-node-2 )?$" places agent-scheduler
kill "$sharding" "$agent"
wait "$sharding" "$agent" 2> /dev/null
unset KUBECONFIG
