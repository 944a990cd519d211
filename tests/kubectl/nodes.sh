# Everyday life of nodes: cordon, drain, taint; and what may be evicted. Sourced by
# tests/kubectl/run.

up --image-map tests/kubectl/manifests/images.yaml --simulated-nodes 2 || exit 1

on() { # on NAME [SPEC]: a pod on sim-node-1
  given "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"$1\",\"labels\":{\"app\":\"$1\"}},\"spec\":{\"nodeName\":\"sim-node-1\",\"terminationGracePeriodSeconds\":1${2:+,$2},\"containers\":[{\"name\":\"c\",\"image\":\"nginx:1\"}]}}" create
}
drain() { k drain sim-node-1 --pod-selector="$@"; }
taints() { k get node sim-node-1 -o jsonpath='{range .spec.taints[*]}{.key}={.value}:{.effect} {end}'; }

says "cordon" "^node/sim-node-1 cordoned$" k cordon sim-node-1
says "cordon again" "^node/sim-node-1 already cordoned$" k cordon sim-node-1
says "a cordoned node is told" "^sim-node-1 +Ready,SchedulingDisabled" k get nodes
says "by a taint, too" "^node.kubernetes.io/unschedulable=:NoSchedule $" bash -c 'for at in $(seq 50); do out=$("$KUBECTL" --kubeconfig "$0" get node sim-node-1 -o jsonpath="{range .spec.taints[*]}{.key}={.value}:{.effect} {end}"); [ -n "$out" ] && break; sleep 0.1; done; echo "$out"' "$state/kubeconfig"
says "uncordon" "^node/sim-node-1 uncordoned$" k uncordon sim-node-1
says "uncordon again" "^node/sim-node-1 already uncordoned$" k uncordon sim-node-1
eventually "the taint is gone" "^$" taints
says "cordon by label" "sim-node-1 cordoned" bash -c '"$KUBECTL" --kubeconfig "$0" label node sim-node-1 rack=7 --overwrite > /dev/null; "$KUBECTL" --kubeconfig "$0" cordon -l rack=7' "$state/kubeconfig"
says "uncordon by label" "sim-node-1 uncordoned" k uncordon -l rack=7
says "the label goes" "unlabeled" k label node sim-node-1 rack-
expect "cordon of nobody" 1 'nodes "nobody" not found' k cordon nobody

says "taint" "^node/sim-node-1 tainted$" k taint node sim-node-1 special=yes:NoSchedule
says "another effect" "tainted" k taint node sim-node-1 special=yes:PreferNoSchedule
expect "the same again" 1 "already has special taint\(s\) with same effect\(s\) and --overwrite is false" k taint node sim-node-1 special=no:NoSchedule
says "another value" "modified" k taint node sim-node-1 special=no:NoSchedule --overwrite
says "both are there" "special=no:NoSchedule" taints
says "describe tells them" "Taints: +special=" k describe node sim-node-1
says "one effect away" "untainted" k taint node sim-node-1 special:PreferNoSchedule-
says "the other one stays" "^special=no:NoSchedule $" taints
says "a key away" "untainted" k taint node sim-node-1 special-
expect "a key that is not there" 1 'taint "special" not found' k taint node sim-node-1 special-
expect "an effect that is none" 1 "invalid taint effect: Sideways" k taint node sim-node-1 a=b:Sideways
expect "a taint without an effect" 1 "invalid taint spec|unknown taint spec" k taint node sim-node-1 a=b
expect "a key that is none" 1 "name part must consist of" k taint node sim-node-1 'a/-=b:NoSchedule'

says "a pod on the node" "created" on plain
says "it runs" "condition met" k wait --for=condition=Ready pod/plain --timeout=20s
expect "drain leaves what nobody would make again" 1 "cannot delete (cannot delete )?Pods that declare no controller \(use --force to override\): [a-z0-9-]+/plain" drain app=plain
says "the node is cordoned nevertheless" "SchedulingDisabled" k get node sim-node-1
says "drain in a dry run" "node/sim-node-1 drained \(server dry run\)" drain app=plain --force --dry-run=server
says "the pod stays" "plain" k get pod plain -o name
says "drain with force" "Warning: deleting Pods that declare no controller: [a-z0-9-]+/plain" drain app=plain --force
expect "the pod is gone" 1 'pods "plain" not found' k get pod plain
says "a pod with a directory of its own" "created" on scratch '"volumes":[{"name":"v","emptyDir":{}}]'
expect "drain leaves it" 1 "cannot delete Pods with local storage \(use --delete-emptydir-data to override\)" drain app=scratch --force
says "drain with its data" "pod/scratch evicted" drain app=scratch --force --delete-emptydir-data
says "a pod that is guarded" "created" on guarded
says "it is ready" "condition met" k wait --for=condition=Ready pod/guarded --timeout=20s
says "its guard" "created" k create poddisruptionbudget guard --selector=app=guarded --min-available=1
says "the guard allows nothing" "condition met" k wait --for=jsonpath='{.status.currentHealthy}'=1 pdb/guard --timeout=20s
says "columns of guards" "^NAME +MIN AVAILABLE +MAX UNAVAILABLE +ALLOWED DISRUPTIONS +AGE$" k get pdb
says "a row of a guard" "^guard +1 +N/A +0 +[0-9]+s" k get pdb
expect "drain is held up" 1 "Cannot evict pod as it would violate the pod's disruption budget" drain app=guarded --force --timeout=3s
expect "an eviction is refused" 1 "Cannot evict pod as it would violate the pod's disruption budget" bash -c '
  at=$("$KUBECTL" --kubeconfig "$0" get pod guarded -o jsonpath="{.metadata.namespace}")
  printf "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"guarded\"}}" | "$KUBECTL" --kubeconfig "$0" create --raw "/api/v1/namespaces/$at/pods/guarded/eviction" -f -' "$state/kubeconfig"
says "drain by deletion" "pod/guarded deleted" drain app=guarded --force --disable-eviction
says "what belongs to a set is made elsewhere" "created" k create deployment moved --image=nginx:1
says "the node may be used again" "uncordoned" k uncordon sim-node-1
says "it is up" "successfully rolled out" k rollout status deployment/moved --timeout=30s
says "wherever it is, it moves" "drained" bash -c '
  node=$("$KUBECTL" --kubeconfig "$0" get pods -l app=moved -o jsonpath="{.items[0].spec.nodeName}")
  "$KUBECTL" --kubeconfig "$0" drain "$node" --pod-selector=app=moved --timeout=30s && "$KUBECTL" --kubeconfig "$0" uncordon "$node"' "$state/kubeconfig"
says "it is up again" "condition met" k wait --for=condition=Available deployment/moved --timeout=30s
says "events tell of evictions or of what came of them" "SuccessfulCreate" k events --for replicaset/"$(k get replicasets -l app=moved -o jsonpath='{.items[0].metadata.name}')"
expect "drain of nobody" 1 'nodes "nobody" not found' k drain nobody
says "describe node tells its room" "Allocatable:" k describe node sim-node-1
says "and its lease" "HolderIdentity: +sim-node-1" k describe node sim-node-1
