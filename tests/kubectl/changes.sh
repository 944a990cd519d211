# `kubectl edit`, `patch`, `replace`, `label`, `annotate`, `delete` and `wait`. Sourced by
# tests/kubectl/run.

up --image-map tests/kubectl/manifests/images.yaml || exit 1

at() { k get "$1" -o jsonpath="$2"; }
map() { printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"%s},"data":%s}' "$1" "${3:-}" "$2"; }
# editor SCRIPT EDIT…: what sed makes of it is what the editor leaves.
editor() {
  printf '#!/bin/sh\nsed -i -e %q "$1"\n' "$1" > "$home/editor"; chmod +x "$home/editor"; shift
  KUBE_EDITOR=$home/editor k "$@"
}
for name in one two three; do k create configmap $name --from-literal=a=1 > /dev/null; done

# ── edit ──────────────────────────────────────────────────────────────────────────────────────
says "edit" "^configmap/one edited$" editor 's/  a:.*/  a: "2"/' edit configmap one
says "what was written" "^2$" at configmap/one '{.data.a}'
says "edit as JSON" '^        "a": "3"$' editor 's/"a": "2"/"a": "3"/' edit configmap one -o json
says "edit of nothing" "Edit cancelled, no changes made" editor '/nothing/d' edit configmap one
says "what was written as JSON" "^3$" at configmap/one '{.data.a}'
says "edit of two" "configmap/two edited" editor 's/  a:.*/  a: edited/' edit configmaps one two
says "edit shows what is there" "^apiVersion: v1" env KUBE_EDITOR=cat "$KUBECTL" --kubeconfig "$state/kubeconfig" edit configmap one
expect "edit of what may not change" 1 "At least one of apiVersion, kind and name was changed" editor 's/name: one/name: uno/' edit configmap one
expect "edit that makes it wrong" 1 "error: configmaps \"one\" is invalid" editor 's/  a:.*/  a: 1/' edit configmap one
says "edit keeps what was applied" "edited" bash -c 'printf %s "$1" | "$KUBECTL" --kubeconfig "$0" apply -f - > /dev/null; KUBE_EDITOR="sed -i s/old/new/" "$KUBECTL" --kubeconfig "$0" edit configmap kept --save-config' "$state/kubeconfig" "$(map kept '{"a":"old"}')"
says "and what is applied now" "a: new" k apply view-last-applied configmap kept
k create deployment scaled --image=nginx:1 --replicas=0 > /dev/null
k wait --for=jsonpath='{.status.observedGeneration}'=1 deployment/scaled --timeout=20s > /dev/null
expect "edit of a scale is more than kubectl can" 1 "Edit cancelled, no valid changes were saved" editor 's/^spec: {}/spec: {replicas: 1}/' edit deployment scaled --subresource=scale
says "edit of a status" "^deployment.apps/scaled edited$" editor 's/^status:$/status:\n  collisionCount: 3/' edit deployment scaled --subresource=status
says "edit of a custom resource" "edited" editor 's/  weight:.*/  weight: 1\n  capability: {cpu: "9"}/' edit queue default
says "it is so" "^9$" at queue/default '{.spec.capability.cpu}'

# ── patch ─────────────────────────────────────────────────────────────────────────────────────
says "strategic" "^configmap/one patched$" k patch configmap one -p '{"data":{"b":"1"}}'
says "the same again" "^configmap/one patched \(no change\)$" k patch configmap one -p '{"data":{"b":"1"}}'
says "as YAML" "patched" k patch configmap one -p 'data: {c: "1"}'
printf 'data: {d: "1"}\n' > "$home/patch.yaml"
says "from a file" "patched" k patch configmap one --patch-file="$home/patch.yaml"
says "merge, taking away" "patched" k patch configmap one --type=merge -p '{"data":{"b":null,"c":null}}'
says "json, in order" "patched" k patch configmap one --type=json -p '[{"op":"test","path":"/data/d","value":"1"},{"op":"copy","from":"/data/d","path":"/data/e"},{"op":"move","from":"/data/e","path":"/data/f"},{"op":"replace","path":"/data/d","value":"2"}]'
says "what it has now" '"d":"2","f":"1"' at configmap/one '{.data}'
expect "json, a test that fails" 1 "testing value /data/d failed|the server rejected our request|test failed" k patch configmap one --type=json -p '[{"op":"test","path":"/data/d","value":"9"},{"op":"remove","path":"/data/d"}]'
expect "json, a path that is not there" 1 "remove operation does not apply: doc is missing|Unable to remove nonexistent key|the server rejected" k patch configmap one --type=json -p '[{"op":"remove","path":"/data/z"}]'
expect "json, an operation that is none" 1 "Unexpected kind: turn|the server rejected|unable to|invalid" k patch configmap one --type=json -p '[{"op":"turn","path":"/data/z"}]'
expect "text that is no patch" 1 "unexpected end of JSON input" k patch configmap one -p '{'
expect "a kind of patch that is none" 1 "--type must be one of \[json merge strategic\]" k patch configmap one --type=sideways -p '{}'
expect "what may not change" 1 "field is immutable|is immutable" k patch deployment scaled -p '{"spec":{"selector":{"matchLabels":{"app":"other"}}}}'
expect "a type that is wrong" 1 "cannot unmarshal|json: |Invalid value|invalid" k patch deployment scaled -p '{"spec":{"replicas":"many"}}'
says "patch -o" '^2$' k patch configmap one -p '{"data":{"d":"2"}}' -o jsonpath='{.data.d}'
says "patch in a dry run" "patched \(server dry run\)|d: \"9\"|patched" k patch configmap one -p '{"data":{"d":"9"}}' --dry-run=server
says "keeps nothing" "^2$" at configmap/one '{.data.d}'
says "patch of a file's object" "patched" given "$(map one '{}')" patch -p '{"data":{"g":"1"}}'
says "containers by name" "patched" k patch deployment scaled -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"redis:7","command":["sleep","6303"]}]}}}}'
says "are added" "^side nginx$|^nginx side$" at deployment/scaled '{.spec.template.spec.containers[*].name}'
says "a container away" "patched" k patch deployment scaled -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}'
says "the other one stays" "^nginx$" at deployment/scaled '{.spec.template.spec.containers[*].name}'
says "a list in an order" "patched" k patch deployment scaled -p '{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"first"},{"name":"nginx"}],"containers":[{"name":"first","image":"redis:7","command":["sleep","6303"]}]}}}}'
says "is in that order" "^first nginx$" at deployment/scaled '{.spec.template.spec.containers[*].name}'
says "a map replaced" "patched" k patch deployment scaled -p '{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}'
says "has nothing else" '^\{"type":"Recreate"\}$' at deployment/scaled '{.spec.strategy}'
says "patch of the scale" "patched" k patch deployment scaled --subresource=scale --type=merge -p '{"spec":{"replicas":0}}'
says "patch of a status" "patched" k patch deployment scaled --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Told","status":"True","reason":"a","message":"b","lastUpdateTime":null,"lastTransitionTime":null}]}}'
says "merge of a custom resource" "patched" k patch queue default --type=merge -p '{"spec":{"capability":null}}'
expect "strategic of a custom resource" 1 "UnsupportedMediaType|unsupported media type|is not supported" k patch queue default --type=strategic -p '{"spec":{"weight":1}}'
expect "a value that the schema refuses" 1 'spec.weight: Invalid value|spec.weight in body' k patch queue default --type=merge -p '{"spec":{"weight":"heavy"}}'

# ── replace ───────────────────────────────────────────────────────────────────────────────────
says "replace" "^configmap/two replaced$" given "$(map two '{"z":"1"}')" replace
says "only that is left" '^\{"z":"1"\}$' at configmap/two '{.data}'
uid=$(at configmap/two '{.metadata.uid}')
says "replace --force" 'configmap/two replaced' given "$(map two '{"z":"2"}')" replace --force
says "makes another one" "^another$" bash -c '[ "$("$KUBECTL" --kubeconfig "$0" get configmap two -o jsonpath={.metadata.uid})" = "$1" ] && echo the same || echo another' "$state/kubeconfig" "$uid"
expect "replace of what is not there" 1 'configmaps "nowhere" not found' given "$(map nowhere '{}')" replace
expect "replace of an old one" 1 "the object has been modified; please apply your changes to the latest version and try again" given "$(map two '{}' ',"resourceVersion":"1"')" replace
expect "replace of another" 1 "Precondition failed: UID in precondition|uid mismatch|StorageError|Conflict" given "$(map two '{}' ',"uid":"00000000-0000-0000-0000-000000000000"')" replace
says "replace of a subresource" "^deployment.apps/scaled replaced$" bash -c '
  "$KUBECTL" --kubeconfig "$0" get deployment scaled -o json | sed "s/\"observedGeneration\": [0-9]*/\"observedGeneration\": 1/" | "$KUBECTL" --kubeconfig "$0" replace --subresource=status -f -' "$state/kubeconfig"

# ── label and annotate ────────────────────────────────────────────────────────────────────────
says "label" "^configmap/one labeled$" k label configmap one colour=red
expect "another value" 1 "'colour' already has a value \(red\), and --overwrite is false" k label configmap one colour=blue
says "the same value" "not labeled" k label configmap one colour=red
says "two, and one away" "labeled" k label configmap one size=large colour- --overwrite
says "are listed" "^size=large$" k label configmap one --list
says "all of a kind" "configmap/three labeled" k label configmaps --all all=yes
says "by label" "configmap/one labeled" k label configmaps -l size=large picked=yes
says "by field" "configmap/two labeled" k label configmaps --field-selector metadata.name=two picked=yes
says "one that is not there" 'label "nothing" not found' k label configmap one nothing-
expect "a value that is none" 1 "invalid label value|Invalid value" k label configmap one 'a=b c'
expect "a key that is none" 1 "invalid label key|name part must consist|Invalid value" k label configmap one '/=b'
expect "by an old version" 1 "the object has been modified" k label configmap one x=y --resource-version=1
says "in a dry run" "labeled \(server dry run\)" k label configmap one x=y --dry-run=server
says "annotate" "^configmap/one annotated$" k annotate configmap one why='because it is so'
says "is read back" "^because it is so$" at configmap/one '{.metadata.annotations.why}'
expect "annotate with another value" 1 "already has a value|--overwrite is false" k annotate configmap one why=else
says "annotate --overwrite, all" "configmap/two annotated" k annotate configmaps --all why=else --overwrite
says "annotate --list" "^why=else$" k annotate configmap one --list
says "annotate away" "annotated" k annotate configmap one why-
expect "an annotation's key that is none" 1 "name part must consist|invalid|Invalid value" k annotate configmap one 'a b=c'

# ── wait ──────────────────────────────────────────────────────────────────────────────────────
says "for a value" "^configmap/one condition met$" k wait --for=jsonpath='{.data.d}'=2 configmap/one --timeout=5s
says "for any value" "condition met" k wait --for=jsonpath='{.data.f}' configmap/one --timeout=5s
expect "for one that does not come" 1 "timed out waiting for the condition on configmaps/one" k wait --for=jsonpath='{.data.d}'=9 configmap/one --timeout=1s
says "for one that comes" "condition met" bash -c '
  (sleep 1; "$KUBECTL" --kubeconfig "$0" patch configmap one -p "{\"data\":{\"late\":\"yes\"}}" > /dev/null) &
  "$KUBECTL" --kubeconfig "$0" wait --for=jsonpath="{.data.late}"=yes configmap/one --timeout=20s' "$state/kubeconfig"
says "for a deletion" "condition met" bash -c '
  (sleep 1; "$KUBECTL" --kubeconfig "$0" delete configmap three > /dev/null) &
  "$KUBECTL" --kubeconfig "$0" wait --for=delete configmap/three --timeout=20s' "$state/kubeconfig"
says "for the deletion of what is not there" "^$" k wait --for=delete configmap/three --timeout=5s
says "for a creation" "condition met" bash -c '
  (sleep 1; "$KUBECTL" --kubeconfig "$0" create configmap comes > /dev/null) &
  "$KUBECTL" --kubeconfig "$0" wait --for=create configmap/comes --timeout=20s' "$state/kubeconfig"
expect "for what is not there" 1 'configmaps "nowhere" not found' k wait --for=jsonpath='{.data.a}'=1 configmap/nowhere --timeout=1s
says "for a condition" "condition met" k wait --for=condition=Available deployment/scaled --timeout=30s
says "for a condition that is false" "condition met" k wait --for=condition=Established=True crd/queues.scheduling.volcano.sh --timeout=5s
says "for all of a label" "configmap/two condition met" k wait --for=jsonpath='{.metadata.name}' configmaps -l picked=yes --timeout=5s
expect "for none of a label" 1 "no matching resources found" k wait --for=condition=Ready pods -l nobody=has --timeout=1s

# ── delete ────────────────────────────────────────────────────────────────────────────────────
map file '{}' > "$home/file.json"
k create -f "$home/file.json" > /dev/null
says "what a file names" 'configmap "file" deleted' k delete -f "$home/file.json"
expect "what is not there" 1 'Error from server \(NotFound\): configmaps "file" not found' k delete configmap file
says "what is not there, overlooked" "^$" k delete configmap file --ignore-not-found
says "in a dry run" 'configmap "one" deleted \(server dry run\)' k delete configmap one --dry-run=server
says "as a name" "^configmap/comes$" k delete configmap comes -o name
says "by label" 'configmap "l" deleted' bash -c '"$KUBECTL" --kubeconfig "$0" create configmap l > /dev/null; "$KUBECTL" --kubeconfig "$0" label configmap l gone=yes > /dev/null; "$KUBECTL" --kubeconfig "$0" delete configmaps -l gone=yes' "$state/kubeconfig"
says "by field" 'configmap "two" deleted' k delete configmaps --field-selector metadata.name=two
says "none of a label" "No resources found" k delete configmaps -l gone=yes
expect "neither name nor label" 1 "resource\(s\) were provided, but no name was specified" k delete configmaps
says "one that is held" "patched" k patch configmap one --type=merge -p '{"metadata":{"finalizers":["example.org/hold"]}}'
says "goes later" 'configmap "one" deleted' k delete configmap one --wait=false
says "is still there" "^20[0-9-]+T.* \[\"example.org/hold\"\]$" at configmap/one '{.metadata.deletionTimestamp} {.metadata.finalizers}'
expect "is waited for in vain" 1 "timed out waiting for the condition" k delete configmap one --timeout=1s
expect "gets no more holders" 1 "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted" k patch configmap one --type=merge -p '{"metadata":{"finalizers":["example.org/hold","example.org/more"]}}'
says "is let go" "patched" k patch configmap one --type=merge -p '{"metadata":{"finalizers":null}}'
expect "is gone" 1 "not found" k get configmap one
k run slow --image=nginx:1 > /dev/null
k wait --for=condition=Ready pod/slow --timeout=20s > /dev/null
says "a pod at once" 'pod "slow" force deleted|Immediate deletion does not wait' k delete pod slow --force --grace-period=0
expect "it is not there" 1 "not found" k get pod slow
says "orphans" 'deployment.apps "scaled" deleted' k delete deployment scaled --cascade=orphan
says "stay" "^1$" bash -c '"$KUBECTL" --kubeconfig "$0" get replicasets -l app=scaled -o name | grep -c . | sed s/[2-9]/1/' "$state/kubeconfig"
eventually "and belong to nobody" "^$" k get replicasets -l app=scaled -o jsonpath='{.items[*].metadata.ownerReferences}'
says "in the foreground" "deleted" k delete replicasets -l app=scaled --cascade=foreground --timeout=40s
says "what belonged to it is gone by then" "No resources found" k get pods -l app=scaled
expect "a cascade that is none" 1 'invalid cascade value|must be "background", "foreground", or "orphan"' k delete configmap one --cascade=sideways
says "all of several kinds" 'configmap "kept" deleted' k delete configmaps,secrets --all
