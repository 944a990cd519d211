# The sentences, in the order a user would come to them. Sourced by tests/kubectl/run.

# ── up ────────────────────────────────────────────────────────────────────────────────────────
up || exit 1
needs commands
says "up prints the export line" "export KUBECONFIG=" cat "$home/up.out"
says "the kubeconfig is for its owner only" "^600$" stat -c %a "$state/kubeconfig"
says "the API is on loopback" "https://127\.0\.0\.1:[0-9]+" cat "$state/kubeconfig"
says "status tells where the plane is" "up +https://127" katmai status --data-dir "$state"
says "get-kubeconfig prints the kubeconfig" "clusters:" katmai get-kubeconfig --data-dir "$state"
expect "a second plane in the same directory is refused" 1 "already" katmai up --data-dir "$state"
needs nothing
expect "whoever has no credentials is refused" 1 "401|Unauthorized|forbidden|provide credentials|must be logged in" \
  timeout 20 "$KUBECTL" --kubeconfig /dev/null --insecure-skip-tls-verify \
  --server "$(k config view --minify -o jsonpath='{.clusters[0].cluster.server}')" --username x --password y get pods

# ── what is there at the start ────────────────────────────────────────────────────────────────
says "the server tells its version" "Server Version: v1\." k version
says "the process node is ready" "node-1 +Ready" k get nodes
says "the usual namespaces are there" "kube-system" k get namespaces
needs volcano
says "queues root and default are open" "Open" k get queue default -o jsonpath='{.status.state}'
needs nothing
says "there is a default storage class" "\(default\)" k get storageclass
says "the system priority classes are there" "system-node-critical" k get priorityclass
says "the default service account appears" "default" k get serviceaccount default
says "api-resources lists Volcano's kinds by short name" "vcjob|vj" k api-resources
says "explain describes a vcjob" "minAvailable" k explain vcjob.spec
says "explain describes a pod" "containers" k explain pod.spec
says "auth can-i answers" "^yes" k auth can-i create pods
says "auth whoami answers" "ATTRIBUTE|Username" k auth whoami

# ── create, with protobuf bodies ──────────────────────────────────────────────────────────────
says "create configmap" "configmap/colours created" k create configmap colours --from-literal=sky=blue
says "create namespace" "namespace/lab created" k create namespace lab
says "create secret" "secret/key created" k create secret generic key --from-literal=word=open
says "create job" "job.batch/hello created" k create job hello --image=busybox -- sh -c 'echo hello from a job'
says "create token" "^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+" k create token default
needs processes
says "a batch job completes" "condition met" k wait --for=condition=complete job/hello --timeout=30s
says "its log can be read" "hello from a job" k logs job/hello
needs nothing
says "what exists already is not created again" "AlreadyExists|already exists" \
  bash -c '! "$0" --kubeconfig "$1" create namespace lab 2>&1 || exit 1' "$KUBECTL" "$state/kubeconfig"

# ── apply ─────────────────────────────────────────────────────────────────────────────────────
cat > "$home/map.yaml" <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {tier: test}}
data: {size: small}
Y
says "apply creates" "configmap/settings created" k apply -f "$home/map.yaml"
says "apply again changes nothing" "configmap/settings unchanged" k apply -f "$home/map.yaml"
sed -i 's/small/large/' "$home/map.yaml"
says "apply of a change configures" "configmap/settings configured" k apply -f "$home/map.yaml"
says "get -o yaml" "size: large" k get configmap settings -o yaml
says "get -o json" '"size": "large"' k get configmap settings -o json
says "get -o jsonpath" "^large$" k get configmap settings -o jsonpath='{.data.size}'
says "create -f with generateName" "configmap/note-[a-z0-9]{5} created" \
  bash -c 'printf "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: note-}\n" | "$0" --kubeconfig "$1" create -f -' "$KUBECTL" "$state/kubeconfig"
expect "an unknown field is refused with its path" 1 'unknown field "spec.minAvailabel"' \
  bash -c 'printf "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: typo}\nspec: {minAvailabel: 1, tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: a, image: busybox}]}}}]}\n" | "$0" --kubeconfig "$1" create -f -' "$KUBECTL" "$state/kubeconfig"
expect "a negative quantity is refused with its path" 1 'spec\.containers\[0\]\.resources' \
  bash -c 'printf "apiVersion: v1\nkind: Pod\nmetadata: {name: minus}\nspec: {containers: [{name: a, image: busybox, resources: {requests: {cpu: \"-1\"}}}]}\n" | "$0" --kubeconfig "$1" create -f -' "$KUBECTL" "$state/kubeconfig"

# ── change ────────────────────────────────────────────────────────────────────────────────────
says "label" "settings labeled" k label configmap settings colour=red
says "annotate" "settings annotated" k annotate configmap settings why=test
says "get by label" "settings" k get configmap -l colour=red
says "get by field" "settings" k get configmap --field-selector metadata.name=settings
says "patch, merge" "patched" k patch configmap settings --type merge -p '{"data":{"a":"1"}}'
says "patch, json" "patched" k patch configmap settings --type json -p '[{"op":"add","path":"/data/b","value":"2"}]'
says "patch, strategic" "patched" k patch configmap settings -p '{"data":{"c":"3"}}'
says "the three patches are there" '"a":"1","b":"2","c":"3"' k get configmap settings -o jsonpath='{.data}'
says "edit" "edited" env KUBE_EDITOR="sed -i s/large/huge/" "$KUBECTL" --kubeconfig "$state/kubeconfig" edit configmap settings
expect "a strategic patch of a custom resource is refused" 1 "UnsupportedMediaType|unsupported media type|media type" \
  k patch queue default --type strategic -p '{"spec":{"weight":1}}'

# ── pods ──────────────────────────────────────────────────────────────────────────────────────
says "run" "pod/one created" k run one --image=busybox --restart=Never --command -- sh -c 'echo begin; sleep 8; echo end'
says "wait for a pod" "condition met" k wait --for=condition=Ready pod/one --timeout=20s
says "get has upstream's columns" "NAME +READY +STATUS +RESTARTS +AGE" k get pods
says "get -o wide shows node and address" "one +1/1 +Running +0 .* 10\.[0-9.]+ +(sim-)?node-[0-9]" k get pods -o wide
says "describe shows containers" "Containers:" k describe pod one
says "describe shows conditions" "ContainersReady +True" k describe pod one
needs processes
says "describe shows events" "Scheduled" k describe pod one
says "logs" "begin" k logs one
says "exec" "^inside$" k exec one -- echo inside
says "exec gives the exit code" "^code 7$" \
  bash -c '"$0" --kubeconfig "$1" exec one -- sh -c "exit 7" > /dev/null 2>&1; echo "code $?"' "$KUBECTL" "$state/kubeconfig"
says "logs -f follows to the end" "end" timeout 40 "$KUBECTL" --kubeconfig "$state/kubeconfig" logs -f one
says "a pod that ended succeeded" "Completed" k get pod one
needs nothing
says "get -w reports changes" "watched" \
  bash -c '("$0" --kubeconfig "$1" get configmap -w & w=$!; sleep 1; "$0" --kubeconfig "$1" create configmap watched > /dev/null; sleep 1; kill $w)' "$KUBECTL" "$state/kubeconfig"
needs processes
says "events" "Scheduled" k get events
needs nothing
says "delete" 'pod "one" deleted' k delete pod one

needs volcano
# ── the gang ──────────────────────────────────────────────────────────────────────────────────
says "run follows the example to its answer" "answer: there are 17984 primes" \
  katmai run --data-dir "$state" --timeout 60s examples/training-gang.yaml
says "the vcjob completed" "Completed" k get vcjob training -o jsonpath='{.status.state.phase}'
says "vcjobs have upstream's columns" "NAME +STATUS +MINAVAILABLE +RUNNINGS +AGE" k get vcjob
says "its claim is bound" "Bound" k get pvc training-results
says "run of what ended already ends at once" "Completed" \
  katmai run --data-dir "$state" --timeout 30s examples/training-gang.yaml
says "logs of a workload have names in front" "master-0 \| answer" katmai logs training --data-dir "$state"
given "
apiVersion: v1
kind: Pod
metadata: {name: waits}
spec: {nodeSelector: {nosuch: label}, containers: [{name: c, image: busybox}]}" create > /dev/null
eventually "nobody places a pod" "Unschedulable" k get pod waits -o jsonpath='{.status.conditions[0].reason}'
expect "whose log is not there yet" 1 "pod/waits has no log yet: it is Pending \\(Unschedulable\\)" katmai logs waits --data-dir "$state"
k delete pod waits --now > /dev/null 2>&1
says "the plane's log as JSON" '^\{"line":.*"task":"katmai"\}' katmai logs -o json --data-dir "$state"
export KUBECONFIG=$state/kubeconfig
says "vcctl job list" "training +[0-9-]{10} +Completed +Batch +5 +5" katmai vcctl job list
says "vcctl queue list" "research +1 +Open" katmai vcctl queue list
says "vcctl job delete" "delete job training successfully" katmai vcctl job delete -N training
unset KUBECONFIG
says "dependents go with their owner" "^$|No resources" \
  bash -c 'for _ in $(seq 100); do out=$("$0" --kubeconfig "$1" get pods -l volcano.sh/job-name=training -o name); [ -z "$out" ] && exit 0; sleep 0.1; done; echo "left: $out"; exit 1' "$KUBECTL" "$state/kubeconfig"
says "a claim that the user made stays" "training-results" k get pvc training-results

# ── suspend and resume ────────────────────────────────────────────────────────────────────────
cat > "$home/sleeper.yaml" <<'Y'
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: sleeper}
spec:
  minAvailable: 1
  schedulerName: volcano
  tasks:
  - {name: a, replicas: 1, template: {spec: {restartPolicy: OnFailure, containers: [{name: a, image: busybox, command: [sleep, "6007"]}]}}}
Y
says "a vcjob is created" "job.batch.volcano.sh/sleeper created" k create -f "$home/sleeper.yaml"
says "it runs" "condition met" k wait --for=jsonpath='{.status.state.phase}'=Running vcjob/sleeper --timeout=20s
export KUBECONFIG=$state/kubeconfig
says "vcctl job suspend" "^$" katmai vcctl job suspend -N sleeper
says "it is aborted" "condition met" k wait --for=jsonpath='{.status.state.phase}'=Aborted vcjob/sleeper --timeout=40s
says "vcctl job resume" "^$" katmai vcctl job resume -N sleeper
says "it runs again" "condition met" k wait --for=jsonpath='{.status.state.phase}'=Running vcjob/sleeper --timeout=40s

# ── upstream's other commands ─────────────────────────────────────────────────────────────────
says "vsub" "run job counted successfully" katmai vsub -n counted -R cpu=10m -L cpu=10m -c 'sh -c "echo one two"'
says "it ends" "condition met" k wait --for=jsonpath='{.status.state.phase}'=Completed vcjob/counted --timeout=40s
says "what it ran was split as a shell would" "echo one two" k get vcjob counted -o jsonpath='{.spec.tasks[0].template.spec.containers[0].command}'
says "vjobs lists" "counted +[0-9-]{10} +Completed" katmai vjobs --selector count
says "vjobs shows one" "Name: +[[:space:]]counted" katmai vjobs -n counted
says "vjobs as JSON" "job.batch.volcano.sh/counted" katmai vjobs --selector count -o name
says "vqueues" "default +1 +Open +0 +0" katmai vqueues -n default
says "vcancel" "cancel job counted successfully" katmai vcancel -n counted
expect "what is not there is said as upstream says it" 255 "Failed to: .*not found" katmai vcancel -n counted
expect "or as others do" 1 "Failed to: .*not found" katmai vcancel -n counted --real-exit-codes
cat > "$home/flow.yaml" <<'Y'
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: two}
spec: {jobRetainPolicy: retain, flows: [{name: first}, {name: second, dependsOn: {targets: [first]}}]}
Y
for name in first second; do
  cat > "$home/$name.yaml" <<Y
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: $name}
spec: {minAvailable: 1, schedulerName: volcano, tasks: [{name: a, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: busybox, command: ["true"], resources: {requests: {cpu: 10m}}}]}}}]}
Y
  says "vcctl jobtemplate create, $name" "Created JobTemplate: default/$name" katmai vcctl jobtemplate create -f "$home/$name.yaml"
done
says "vcctl jobflow create" "Created JobFlow: default/two" katmai vcctl jobflow create -f "$home/flow.yaml"
says "it runs to its end" "condition met" k wait --for=jsonpath='{.status.state.phase}'=Succeed jobflow/two --timeout=40s
says "vcctl jobflow list" "two +default +Succeed" katmai vcctl jobflow list
says "with more columns" "two +default +Succeed +[0-9a-z]+ +2 +0 +0" katmai vcctl jobflow list -o wide
says "vcctl jobflow describe" "jobRetainPolicy: \"?retain" katmai vcctl jobflow describe -N two
says "vcctl jobtemplate list" "first +default" katmai vcctl jobtemplate list
says "a flow that is there is a failure that upstream does not count" "Failed to create JobFlow: .*already exists" katmai vcctl jobflow create -f "$home/flow.yaml"
expect "and that counts when that is asked for" 1 "already exists" katmai vcctl jobflow create -f "$home/flow.yaml" --real-exit-codes
says "vcctl jobflow delete" "Deleted JobFlow: default/two" katmai vcctl jobflow delete -N two
says "vcctl jobtemplate delete by file" "Deleted JobTemplate: default/first" katmai vcctl jobtemplate delete -f "$home/first.yaml"
says "vcctl completes" "jobflow" katmai vcctl completion bash
unset KUBECONFIG

# ── restart of the plane ──────────────────────────────────────────────────────────────────────
says "what runs when the plane ends" "condition met" k wait --for=condition=Ready pod -l volcano.sh/job-name=sleeper --timeout=20s
if [ -n "$plane" ]; then
  kill -9 "$plane"; wait "$plane" 2> /dev/null
  up || exit 1
fi
says "state survives kill -9" "settings" k get configmap settings
says "containers that ran end with NodeRestarted" "NodeRestarted" \
  bash -c 'for _ in $(seq 100); do out=$("$0" --kubeconfig "$1" get pods -l volcano.sh/job-name=sleeper -o yaml); grep -m1 NodeRestarted <<< "$out" && exit 0; sleep 0.1; done; tail -40 <<< "$out"; exit 1' "$KUBECTL" "$state/kubeconfig"
says "and with exit code 137" "137" \
  k get pods -l volcano.sh/job-name=sleeper -o jsonpath='{.items[*].status.containerStatuses[*].lastState.terminated.exitCode}'
says "restart rules apply" "condition met" k wait --for=condition=Ready pod -l volcano.sh/job-name=sleeper --timeout=40s
says "no process outlives its plane" "^[01]$" bash -c 'pgrep -u "$(id -u)" -fxc "sleep 6007"; true'

# ── a claim that comes late ───────────────────────────────────────────────────────────────────
says "a job with a missing claim is accepted" "late created" k create -f examples/late-claim.yaml
says "it says which claim is missing" "dataset" \
  bash -c 'for _ in $(seq 50); do out=$("$0" --kubeconfig "$1" get vcjob late -o jsonpath="{.status.state}"); grep dataset <<< "$out" && exit 0; sleep 0.1; done; echo "$out"; exit 1' "$KUBECTL" "$state/kubeconfig"
says "it creates nothing meanwhile" "^0$" bash -c '"$0" --kubeconfig "$1" get pods,podgroups -o name 2> /dev/null | grep -c late; true' "$KUBECTL" "$state/kubeconfig"
says "the claim starts it" "created" k create -f examples/late-claim-dataset.yaml
says "it completes" "condition met" k wait --for=jsonpath='{.status.state.phase}'=Completed vcjob/late --timeout=30s

needs nothing
# ── deletion in bulk ──────────────────────────────────────────────────────────────────────────
says "delete by label" 'configmap "settings" deleted' k delete configmap -l tier=test
says "delete a namespace with what is in it" 'namespace "lab" deleted' k delete namespace lab --timeout=30s
down
needs commands
expect "status says when no plane is up" 1 "no plane is up" katmai status --data-dir "$state"

# ── planes of other shapes ────────────────────────────────────────────────────────────────────
expect "a gang without room says the missing room and times out" 3 \
  "4 of 5 tasks fit: worker-3 needs 100m cpu, node-1 has 50m left" \
  katmai run --node-cpu 450m --timeout 5s examples/training-gang.yaml
expect "a bad manifest is told with file, line and field" 2 "typo.yaml:[0-9]+:[0-9]+: spec.minAvailabel: unknown field" \
  bash -c 'printf "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: typo}\nspec:\n  minAvailabel: 1\n  tasks: []\n" > "$0/typo.yaml"; "$1" run "$0/typo.yaml"' "$home" "$KATMAI"
says "a flaky worker is restarted by its policy" "Completed" katmai run --timeout 60s examples/flaky-worker.yaml
says "two queues share imitation nodes" "vcjob/silver +Completed" \
  katmai run --simulated-nodes 2 --timeout 80s examples/fair-share.yaml
says "events as JSON for machines" '"event":"summary","exitCode":0' \
  katmai run -o json --timeout 60s examples/training-gang.yaml
[ $side = theirs ] && return 0
state=$home/fleet
if up --ephemeral --simulated-nodes 1000 --port 0; then
  says "a thousand imitation nodes are ready" "^100[01]$" \
    bash -c 'for _ in $(seq 100); do n=$("$0" --kubeconfig "$1" get nodes --no-headers | grep -c " Ready "); [ "$n" -ge 1000 ] && break; sleep 0.1; done; echo "$n"' "$KUBECTL" "$state/kubeconfig"
  k create configmap gone > /dev/null
  down
  says "an ephemeral plane keeps nothing" "^0$" bash -c 'ls "$0/data" 2> /dev/null | wc -l' "$state"
fi
