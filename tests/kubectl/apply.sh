# `kubectl apply` in both ways, and `kubectl diff`. Sourced by tests/kubectl/run.

up --image-map tests/kubectl/manifests/images.yaml || exit 1

at() { k get "$1" -o jsonpath="$2"; }
# map NAME DATA [METADATA]: a config map, both in JSON.
map() { printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"%s},"data":%s}' "$1" "${3:-}" "$2"; }
managers() { k get "$1" --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager}/{.operation}/{.subresource} {end}'; }

# ── by the client ─────────────────────────────────────────────────────────────────────────────
says "apply creates" "^configmap/one created$" given "$(map one '{"a":"1","b":"1"}')" apply
says "what was applied is kept with it" 'last-applied-configuration' at configmap/one '{.metadata.annotations}'
says "the same again" "^configmap/one unchanged$" given "$(map one '{"a":"1","b":"1"}')" apply
says "a change" "^configmap/one configured$" given "$(map one '{"a":"2","b":"1"}')" apply
says "what somebody else wrote" "patched" k patch configmap one --type=merge -p '{"data":{"theirs":"x"}}'
says "what is left out goes" "^configmap/one configured$" given "$(map one '{"a":"2"}')" apply
says "and only that" '^\{"a":"2","theirs":"x"\}$' at configmap/one '{.data}'
says "apply -o" '"a":"2"' given "$(map one '{"a":"2"}')" apply -o jsonpath='{.data}'
says "a dry run of the client" '^configmap/one configured \(dry run\)$' given "$(map one '{"a":"3"}')" apply --dry-run=client
says "a dry run of the server" '^configmap/one configured \(server dry run\)$' given "$(map one '{"a":"3"}')" apply --dry-run=server
says "neither changes anything" "^2$" at configmap/one '{.data.a}'
says "what was made otherwise" "created" k create configmap other --from-literal=a=1
says "is applied with a warning" "Warning: resource configmaps/other is missing the kubectl.kubernetes.io/last-applied-configuration annotation" given "$(map other '{"a":"2"}')" apply
says "set-last-applied" "configured" given "$(map other '{"a":"2","gone":"1"}')" apply set-last-applied
says "view-last-applied as JSON" '"gone": "1"' k apply view-last-applied configmap/other -o json
says "edit-last-applied" "edited" env KUBE_EDITOR="sed -i s/gone/went/" "$KUBECTL" --kubeconfig "$state/kubeconfig" apply edit-last-applied configmap/other
says "what it then says" "went:" k apply view-last-applied configmap other
expect "set-last-applied of what has none" 1 "no last-applied-configuration annotation|could not find|not found" given "$(map nowhere '{}')" apply set-last-applied
expect "an old resourceVersion" 1 "Operation cannot be fulfilled on configmaps \"one\": the object has been modified; please apply your changes to the latest version and try again" \
  given "$(map one '{"a":"9"}' ',"resourceVersion":"1"')" apply
expect "a selector and names" 1 "cannot specify|no objects passed|error" k apply -f "$home/nowhere.yaml" -l a=b
says "by label only" "^configmap/left created$" bash -c '
  printf "%s\n%s" "$1" "$2" | "$KUBECTL" --kubeconfig "$0" apply -l pick=me -f -' "$state/kubeconfig" \
  "$(map left '{}' ',"labels":{"pick":"me"}')" "$(map right '{}' ',"labels":{"pick":"not"}')"
expect "the other one was not made" 1 "not found" k get configmap right
says "a list" "configmap/l2 created" given "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[$(map l1 '{}'),$(map l2 '{}')]}" apply
expect "one of two is wrong" 1 'metadata.name: Invalid value: "UPPER"' given "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[$(map UPPER '{}'),$(map l3 '{}')]}" apply
says "the other one was made" "configmap/l3" k get configmap l3 -o name
mkdir -p "$home/tree/deep"
map t1 '{}' > "$home/tree/one.json"; map t2 '{}' > "$home/tree/deep/two.json"
says "a folder" "^configmap/t1 created$" k apply -f "$home/tree"
says "a folder to its ground" "^configmap/t2 created$" k apply -R -f "$home/tree"

# Lists that are merged by a key, and fields that nobody else may keep.
web() { # web CONTAINERS [REPLICAS]
  printf '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{%s"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":%s}}}}' "${2:+\"replicas\":$2,}" "$1"
}
says "a deployment is applied" "created" given "$(web '[{"name":"c","image":"nginx:1","env":[{"name":"A","value":"1"},{"name":"B","value":"1"}],"ports":[{"containerPort":80},{"containerPort":81}]}]' 0)" apply
says "somebody adds a variable" "env updated" k set env deployment/web THEIRS=1
says "a variable and a port are left out" "configured" given "$(web '[{"name":"c","image":"nginx:1","env":[{"name":"A","value":"2"}],"ports":[{"containerPort":81}]}]' 0)" apply
says "by the client the others stay" '^A=2 THEIRS=1 $' at deployment/web '{range .spec.template.spec.containers[0].env[*]}{.name}={.value} {end}'
says "the port is gone" '^81$' at deployment/web '{.spec.template.spec.containers[0].ports[*].containerPort}'
says "somebody scales it" "scaled" k scale deployment web --replicas=1
says "replicas are applied no more" "configured" given "$(web '[{"name":"c","image":"nginx:1"}]')" apply
says "what was applied and then left out goes to its default" '^1 \[\] ?$|^1 $' at deployment/web '{.spec.replicas} {.spec.template.spec.containers[0].ports}'
expect "what may not change" 1 "spec.selector: Invalid value: .*field is immutable" bash -c 'printf %s "$1" | sed s/app\"/other\"/g | "$KUBECTL" --kubeconfig "$0" apply -f -' "$state/kubeconfig" "$(web '[{"name":"c","image":"nginx:1"}]')"
says "unless it is made anew" "configured" bash -c 'printf %s "$1" | sed s/app\"/other\"/g | "$KUBECTL" --kubeconfig "$0" apply --force -f - --grace-period=0 2>&1' "$state/kubeconfig" "$(web '[{"name":"c","image":"nginx:1"}]' 0)"
says "it has another selector" '"other":"web"' at deployment/web '{.spec.selector.matchLabels}'

# Pruning.
mkdir -p "$home/prune"
map p1 '{}' ',"labels":{"set":"p"}' > "$home/prune/1.json"; map p2 '{}' ',"labels":{"set":"p"}' > "$home/prune/2.json"
says "a set" "configmap/p2 created" k apply -f "$home/prune" --prune -l set=p --prune-allowlist=core/v1/ConfigMap
says "one of its label that was not applied" "created" given "$(map p3 '{}' ',"labels":{"set":"p"}')" create
rm "$home/prune/2.json"
says "pruning, in a dry run" 'configmap/p2 pruned \(server dry run\)' k apply -f "$home/prune" --prune -l set=p --prune-allowlist=core/v1/ConfigMap --dry-run=server
says "pruning" "^configmap/p2 pruned$" k apply -f "$home/prune" --prune -l set=p --prune-allowlist=core/v1/ConfigMap
says "what was not applied stays" "^configmap/p1 configmap/p3 $" bash -c '"$KUBECTL" --kubeconfig "$0" get configmaps -l set=p -o name | tr "\n" " "' "$state/kubeconfig"
export KUBECTL_APPLYSET=true here=$(k config view --minify -o jsonpath='{..namespace}')
here=${here:-default}
rm -rf "$home/prune"; mkdir "$home/prune"; map s1 '{}' > "$home/prune/1.json"; map s2 '{}' > "$home/prune/2.json"
says "a set with a parent" "configmap/s2 serverside-applied|configmap/s2 created" k apply --server-side -f "$home/prune" --prune --applyset=keeper -n "$here"
rm "$home/prune/2.json"
says "pruning by a parent" "configmap/s2 pruned" k apply --server-side -f "$home/prune" --prune --applyset=keeper -n "$here"
unset KUBECTL_APPLYSET here

# ── by the server ─────────────────────────────────────────────────────────────────────────────
serverside() { local m=$1 o=$2; shift 2; given "$o" apply --server-side --field-manager="$m" "$@"; }
says "apply --server-side creates" "^configmap/shared serverside-applied$" serverside first "$(map shared '{"a":"1","b":"1"}')"
says "nothing is kept in annotations" "^$" at configmap/shared '{.metadata.annotations}'
says "the manager applies" "^first/Apply/ $" managers configmap/shared
was=$(at configmap/shared '{.metadata.resourceVersion}')
says "the same again" "serverside-applied" serverside first "$(map shared '{"a":"1","b":"1"}')"
says "writes nothing" "^$was$" at configmap/shared '{.metadata.resourceVersion}'
expect "a conflict" 1 'Apply failed with 1 conflict: conflict with "first": .data.a' serverside second "$(map shared '{"a":"2"}')"
expect "it says what can be done" 1 "manage all of these fields, please re-run the apply$" serverside second "$(map shared '{"a":"2"}')"
expect "two conflicts" 1 '(Apply failed with 2 conflicts: conflicts with "first"|- .data.b)' serverside second "$(map shared '{"a":"2","b":"2"}')"
says "the same value is no conflict" "serverside-applied" serverside second "$(map shared '{"a":"1"}')"
says "both own it" "first/Apply/" managers configmap/shared
says "one of them leaves it out" "serverside-applied" serverside first "$(map shared '{"b":"1"}')"
says "the other one keeps it" '^\{"a":"1","b":"1"\}$' at configmap/shared '{.data}'
says "both leave it out" "serverside-applied" serverside second "$(map shared '{}')"
says "it is gone" '^\{"b":"1"\}$' at configmap/shared '{.data}'
says "a conflict that is decided" "serverside-applied" serverside second "$(map shared '{"b":"2"}')" --force-conflicts
says "the first one has it no more" '^second/Apply/ $' managers configmap/shared
says "a dry run" "serverside-applied \(server dry run\)" serverside third "$(map shared '{"c":"1"}')" --dry-run=server
says "keeps nothing" '^\{"b":"2"\}$' at configmap/shared '{.data}'
says "a patch of somebody" "patched" k patch configmap shared --type=merge -p '{"data":{"b":"3"}}' --field-manager=hand
expect "is in the way as well" 1 'conflict with "hand" using v1: .data.b' serverside second "$(map shared '{"b":"2"}')"
says "made by create" "created" k create configmap made --from-literal=a=1
expect "create's fields are in the way" 1 'conflict with "kubectl-create" using v1: .data.a' given "$(map made '{"a":"2"}')" apply --server-side
says "applied by the client" "created" given "$(map taken '{"a":"1"}')" apply
says "taken over by the server" "serverside-applied" given "$(map taken '{"a":"2"}')" apply --server-side
says "what was kept by the client is the server's now" "^kubectl/Apply/ $|kubectl/Apply/" managers configmap/taken
expect "a field that is not there" 1 '\.dta: field not declared in schema|unknown field "dta"' given '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"typo"},"dta":{}}' apply --server-side
expect "no name" 1 "name" given '{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}' apply --server-side
says "a list by its keys" "serverside-applied" serverside ports '{"apiVersion":"v1","kind":"Service","metadata":{"name":"keys"},"spec":{"selector":{"a":"b"},"ports":[{"port":80,"protocol":"TCP","name":"a"}]}}'
says "another's entry" "serverside-applied" serverside more '{"apiVersion":"v1","kind":"Service","metadata":{"name":"keys"},"spec":{"ports":[{"port":81,"protocol":"TCP","name":"b"}]}}'
says "are side by side" "^80 81$" at service/keys '{.spec.ports[*].port}'
expect "a key twice" 1 'duplicate entries for key' serverside ports '{"apiVersion":"v1","kind":"Service","metadata":{"name":"keys"},"spec":{"ports":[{"port":80,"protocol":"TCP","name":"a"},{"port":80,"protocol":"TCP","name":"c"}]}}'
says "a status" "serverside-applied" serverside teller '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"told"},"spec":{"schedulingGates":[{"name":"example.org/a"}],"containers":[{"name":"c","image":"nginx:1"}]}}'
says "by its subresource" "serverside-applied" serverside teller2 '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"told"},"status":{"conditions":[{"type":"example.org/Told","status":"True"}]}}' --subresource=status
says "the manager's name tells it" "teller2/Apply/status" managers pod/told
says "a kind of Volcano" "serverside-applied" serverside first '{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"katmai-applied"},"spec":{"weight":2}}'
expect "and its conflict" 1 'conflict with "first": .spec.weight' serverside second '{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"katmai-applied"},"spec":{"weight":3}}'
says "it goes" "deleted" k delete queue katmai-applied

# ── diff ──────────────────────────────────────────────────────────────────────────────────────
says "diff of what is so" "^$" given "$(map one '{"a":"2"}')" diff
expect "diff of a change" 1 '^\+  a: "3"$' given "$(map one '{"a":"3"}')" diff
expect "diff of what it was" 1 '^-  a: "2"$' given "$(map one '{"a":"3"}')" diff
expect "diff of what is new" 1 '^\+  name: new$' given "$(map new '{"a":"3"}')" diff
expect "diff by the server" 1 '^\+  z: "1"$' given "$(map shared '{"z":"1"}')" diff --server-side
expect "diff by the server, with conflicts" 2 'conflict with "hand"|Apply failed' given "$(map shared '{"b":"7"}')" diff --server-side --field-manager=second
expect "diff by the server, decided" 1 '^\+  b: "7"$' given "$(map shared '{"b":"7"}')" diff --server-side --field-manager=second --force-conflicts
expect "diff with another program" 1 "^Only in|differ|diff " env KUBECTL_EXTERNAL_DIFF="diff -rq" "$KUBECTL" --kubeconfig "$state/kubeconfig" diff -f <(map one '{"a":"3"}')
expect "diff of secrets hides them" 1 "\*\*\* \((before|after)\)" bash -c '
  "$KUBECTL" --kubeconfig "$0" create secret generic hidden --from-literal=a=b > /dev/null
  printf "apiVersion: v1\nkind: Secret\nmetadata: {name: hidden}\ndata: {a: Yw==}\n" | "$KUBECTL" --kubeconfig "$0" diff -f -' "$state/kubeconfig"
expect "diff of what is refused" 2 'metadata.name: Invalid value' given "$(map UPPER '{}')" diff
says "diff keeps nothing" "^2$" at configmap/one '{.data.a}'
