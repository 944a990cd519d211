# `kubectl get`: what is chosen, in which order, and how it is printed. Sourced by tests/kubectl/run.

up || exit 1

cat > "$home/output.yaml" <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: alder, labels: {kind: tree, leaf: round}, annotations: {height: "20"}}
data: {wood: soft, rank: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: birch, labels: {kind: tree, leaf: pointed}}
data: {wood: soft, rank: "3"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: clover, labels: {kind: herb}}
data: {rank: "1"}
---
apiVersion: v1
kind: Service
metadata: {name: garden, labels: {kind: place}}
spec: {selector: {kind: tree}, ports: [{name: http, port: 80, targetPort: 8080}, {name: dns, port: 53, protocol: UDP}]}
---
apiVersion: v1
kind: Pod
metadata: {name: gate, labels: {kind: place}}
spec:
  schedulingGates: [{name: example.org/closed}]
  containers: [{name: main, image: "busybox:1", command: [sleep, "6301"]}, {name: side, image: "busybox:2", command: [sleep, "6301"]}]
Y
says "what is looked at" "pod/gate created" k create -f "$home/output.yaml"

# ── which ─────────────────────────────────────────────────────────────────────────────────────
names() { k get "$@" -o jsonpath='{.items[*].metadata.name}'; }
says "by equality" "^alder birch$" names configmaps -l kind=tree
says "by two equalities" "^birch$" names configmaps -l 'kind==tree,leaf=pointed'
says "by inequality" "^clover$" names configmaps -l 'kind,kind!=tree'
says "by a set" "^alder clover$" names configmaps -l 'leaf notin (pointed),kind in (tree,herb)'
says "by a label that is there" "^alder birch$" names configmaps -l leaf
says "by a label that is missing" "^clover$" names configmaps -l 'kind,!leaf'
says "by name" "^birch$" names configmaps --field-selector metadata.name=birch
says "by another name" "^alder clover$" names configmaps -l kind --field-selector metadata.name!=birch
says "by labels and name" "^alder$" names configmaps -l kind=tree --field-selector metadata.name=alder
says "services by a field of their own" "^garden$" names services --field-selector spec.type=ClusterIP -l kind=place
says "pods by their phase" "^gate$" names pods --field-selector status.phase=Pending,spec.restartPolicy=Always
says "pods by their node" "^gate$" names pods --field-selector spec.nodeName=
expect "a field that cannot be selected by" 1 'field label not supported: data.rank|"data.rank" is not a known field selector' k get configmaps --field-selector data.rank=1
expect "a field selector that is none" 1 'invalid selector|invalid field selector' k get configmaps --field-selector rank
expect "a label selector that is none" 1 "unable to parse requirement|found '=', expected" k get configmaps -l 'a=='=
expect "a label's value that is too long" 1 'must be no more than 63|unable to parse requirement' k get configmaps -l "a=$(printf 'x%.0s' {1..64})"
says "several by name" "^clover alder$" names configmaps clover alder
says "several kinds at once" "^alder birch clover garden$" names configmaps,services -l 'kind,kind notin (none)'
says "kind and name in one word" "^alder garden$" names configmap/alder service/garden
says "what a file names" "^alder birch clover garden gate$" names -f "$home/output.yaml"
says "by a short name" "^configmap/alder$" k get cm alder -o name
expect "one that is there and one that is not" 1 '"elder" not found' k get configmaps alder elder
says "the one that is there is printed nevertheless" "^alder +2" bash -c '"$KUBECTL" --kubeconfig "$0" get configmaps alder elder; true' "$state/kubeconfig"
says "what is missing may be overlooked" "^$" k get configmap elder --ignore-not-found
says "nothing is there" "No resources found in .* namespace" k get configmaps -l kind=stone
says "nothing is there in any namespace" "^No resources found$" k get configmaps -A -l kind=stone
says "in pages" "^alder birch clover$" names configmaps -l kind --chunk-size=1
says "raw, a page and where the next begins" '"continue":"[A-Za-z0-9_-]+","remainingItemCount":[1-9]' k get --raw '/api/v1/configmaps?limit=1'
expect "raw, a page of nowhere" 1 'continue key is not valid' k get --raw '/api/v1/configmaps?limit=1&continue=nowhere'
says "raw, selected" '"items":\[\]' k get --raw '/api/v1/configmaps?labelSelector=kind%3Dstone'

# ── in which order ────────────────────────────────────────────────────────────────────────────
order() { k get configmaps -l kind --no-headers -o custom-columns=N:.metadata.name "$@" | tr '\n' ' '; }
says "sorted by a field of the data" "^clover alder birch $" order --sort-by=.data.rank
says "sorted by a field with braces" "^clover alder birch $" order --sort-by='{.data.rank}'
says "sorted by name" "^alder birch clover $" order --sort-by=.metadata.name

# ── how ───────────────────────────────────────────────────────────────────────────────────────
says "columns of config maps" "^NAME +DATA +AGE$" k get configmaps
says "columns of services" "^NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE$" k get services
says "columns of services, wide" "EXTERNAL-IP +PORT\(S\) +AGE +SELECTOR$" k get services -o wide
says "a row of a service" "^garden +ClusterIP +10\.96\.[0-9.]+ +<none> +80/TCP,53/UDP +[0-9]+[sm].* kind=tree$" k get service garden -o wide
says "columns of pods, wide" "^NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES$" k get pods -o wide
says "a row of a pod that waits" "^gate +0/2 +SchedulingGated +0 +[0-9]+[sm].* <none> +<none> +<none> +<none>$" k get pods -o wide
says "columns of nodes" "^NAME +STATUS +ROLES +AGE +VERSION$" k get nodes
says "columns of namespaces" "^NAME +STATUS +AGE$" k get namespaces
says "columns of secrets" "^NAME +TYPE +DATA +AGE$" bash -c '"$KUBECTL" --kubeconfig "$0" create secret generic s > /dev/null; "$KUBECTL" --kubeconfig "$0" get secrets' "$state/kubeconfig"
says "columns of service accounts" "^NAME +SECRETS +AGE$|^NAME +AGE$" k get serviceaccounts
says "columns of storage classes" "^NAME +PROVISIONER +RECLAIMPOLICY +VOLUMEBINDINGMODE +ALLOWVOLUMEEXPANSION +AGE$" k get storageclasses
says "columns of priority classes" "^NAME +VALUE +GLOBAL-DEFAULT +AGE( +PREEMPTIONPOLICY)?$" k get priorityclasses
says "columns of definitions" "^NAME +CREATED AT$" k get crd
says "columns of events" "^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE$" bash -c '
  printf "apiVersion: v1\nkind: Event\nmetadata: {name: e}\ninvolvedObject: {kind: Pod, name: gate, apiVersion: v1, namespace: $1}\nreason: Locked\nmessage: the gate is closed\ntype: Warning\n" |
    "$KUBECTL" --kubeconfig "$0" create -f - > /dev/null; "$KUBECTL" --kubeconfig "$0" get events' \
  "$state/kubeconfig" "$(k config view --minify -o jsonpath='{..namespace}' | sed 's/^$/default/')"
says "columns of leases" "^NAME +HOLDER +AGE$" k get leases -n kube-node-lease
says "columns of Volcano's queues" "^NAME +PARENT" k get queues
says "no headers" "^alder +2 +[0-9]+[sm]" bash -c '"$KUBECTL" --kubeconfig "$0" get configmap alder --no-headers | head -1' "$state/kubeconfig"
says "with the kind" "^configmap/alder +2" k get configmap alder --show-kind
says "with all labels" "^alder .* kind=tree,leaf=round$" k get configmap alder --show-labels
says "with chosen labels" "^NAME +DATA +AGE +KIND +LEAF$" k get configmaps -L kind,leaf
says "a label that is missing is blank" "^clover +1 +[0-9]+[sm][0-9sm]* +herb *$" k get configmaps -L kind,leaf
says "printed by the client" "^alder +[0-9]+[sm]" k get configmap alder --server-print=false
says "as names" "^configmap/alder$" k get configmap alder -o name
says "as names of several kinds" "^service/garden$" k get configmaps,services -l kind -o name
says "as YAML" "^  wood: soft$" k get configmap alder -o yaml
says "as YAML, many" "^kind: List$" k get configmaps -l kind -o yaml
says "as JSON" '^    "kind": "ConfigMap",$' k get configmap alder -o json
says "managed fields are left out" "^0$" bash -c '"$KUBECTL" --kubeconfig "$0" get configmap alder -o json | grep -c managedFields; true' "$state/kubeconfig"
says "managed fields may be asked for" '"manager": "kubectl-create"' k get configmap alder -o json --show-managed-fields
says "by jsonpath" "^soft 2$" k get configmap alder -o jsonpath='{.data.wood} {.data.rank}'
says "by jsonpath, a range" "^alder=2;birch=3;clover=1;$" k get configmaps -l kind -o jsonpath='{range .items[*]}{.metadata.name}={.data.rank};{end}'
says "by jsonpath, a filter" "^birch$" k get configmaps -l kind -o jsonpath='{.items[?(@.data.rank=="3")].metadata.name}'
says "by jsonpath, a key with a dot" "^http$" k get services -l kind -o jsonpath='{.items[0].spec.ports[?(@.port==80)].name}'
says "by jsonpath, as JSON" '^\[$' k get configmap alder -o jsonpath-as-json='{.data}'
printf '{.data.wood}' > "$home/path"
says "by jsonpath from a file" "^soft$" k get configmap alder -o jsonpath-file="$home/path"
expect "by jsonpath that is none" 1 "error parsing jsonpath|unterminated" k get configmap alder -o jsonpath='{.data'
says "by a template" "^soft/2$" k get configmap alder -o go-template='{{.data.wood}}/{{.data.rank}}'
says "by a template over many" "^alder birch clover $" k get configmaps -l kind -o go-template='{{range .items}}{{.metadata.name}} {{end}}'
printf '{{range $k, $v := .data}}{{$k}}:{{$v}} {{end}}' > "$home/template"
says "by a template from a file" "^rank:2 wood:soft $" k get configmap alder -o go-template-file="$home/template"
says "by --template" "^rank:2 wood:soft $" k get configmap alder -o templatefile --template="$home/template"
expect "by a template that is none" 1 "error parsing template" k get configmap alder -o go-template='{{.data'
says "by columns of one's own" "^clover +1 +<none>$" k get configmaps -l kind -o custom-columns=NAME:.metadata.name,RANK:.data.rank,WOOD:.data.wood
printf 'NAME RANK\nmetadata.name data.rank\n' > "$home/columns"
says "by columns from a file" "^birch +3$" k get configmaps -l kind -o custom-columns-file="$home/columns"
expect "by a format that is none" 1 "unable to match a printer suitable for the output format" k get configmaps -o sideways
says "a subresource" "^Pending$" k get pod gate --subresource=status -o jsonpath='{.status.phase}'

# ── as it changes ─────────────────────────────────────────────────────────────────────────────
# watched WHAT COMMAND -- FLAG…: what a watch prints while the command is done.
watched() {
  local pid out=$home/watched tries deed=$1; shift
  timeout 30 "$KUBECTL" --kubeconfig "$state/kubeconfig" get "$@" > "$out" 2>&1 &
  pid=$!
  # It is open when it has printed what is there.
  for tries in $(seq 100); do grep -q alder "$out" && break; sleep 0.1; done
  eval "$deed" > /dev/null 2>&1
  for tries in $(seq 50); do grep -q zelkova "$out" && break; sleep 0.1; done
  kill "$pid" 2> /dev/null; wait "$pid" 2> /dev/null
  cat "$out"
}
end='k label configmap alder name=zelkova --overwrite'
says "-w tells what is there and what changes" "^clover +2 " watched "k patch configmap clover -p '{\"data\":{\"b\":\"c\"}}'; $end" configmaps -w -L name
says "-w of one" "^alder .* zelkova$" watched "k label configmap alder name-; $end" configmap alder -w -L name
says "-w by label tells who comes" "^thyme +1" watched "k create configmap thyme --from-literal=a=b; k label configmap thyme kind=herb; $end" configmaps -w -l kind -L name
says "-w with events, changes" "^MODIFIED +alder .* zelkova$" watched "k label configmap alder name-; $end" configmaps -w -L name --output-watch-events
says "-w with events, what leaves a selection is deleted" "^DELETED +thyme" watched "k label configmap thyme kind-; k label configmap alder name-; $end" configmaps -w -l kind -L name --output-watch-events
says "-w as JSON" '"name": "zelkova"' watched "k label configmap alder name-; $end" configmaps -w -o json
says "-w as names" "^configmap/zelkova$" watched "k create configmap zelkova" configmaps -w -o name
says "--watch-only leaves out what is there" "^[a-z/]*thyme" bash -c '
  timeout 30 "$KUBECTL" --kubeconfig "$0" get configmaps --watch-only --no-headers -o name > "$1/only" & pid=$!
  for at in $(seq 60); do "$KUBECTL" --kubeconfig "$0" annotate configmap thyme at=$at --overwrite > /dev/null; [ -s "$1/only" ] && break; sleep 0.1; done
  kill $pid; sort -u "$1/only"' "$state/kubeconfig" "$home"
