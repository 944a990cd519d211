# `kubectl scale`, `rollout`, `set` and `autoscale`, with their options and refusals. Sourced by
# tests/kubectl/run.

up --image-map tests/kubectl/manifests/images.yaml || exit 1

at() { k get "$1" -o jsonpath="$2"; }
image() { at deployment/web '{.spec.template.spec.containers[0].image}'; }
variables() { at deployment/web '{range .spec.template.spec.containers[0].env[*]}{.name}={.value}{.valueFrom.configMapKeyRef.key} {end}'; }

says "a deployment" "created" k create deployment web --image=nginx:1 --replicas=1
says "it is rolled out" 'deployment "web" successfully rolled out' k rollout status deployment/web --timeout=30s

# ── scale ─────────────────────────────────────────────────────────────────────────────────────
says "scale" "^deployment.apps/web scaled$" k scale deployment web --replicas=2
says "scale from what it is" "scaled" k scale deployment web --current-replicas=2 --replicas=1
expect "scale from what it is not" 1 'Expected replicas to be 7, was 1' k scale deployment web --current-replicas=7 --replicas=2
expect "scale an old one" 1 'Expected resource version to be 1, was|resourceVersion|the object has been modified' k scale deployment web --resource-version=1 --replicas=2
expect "scale below nothing" 1 "non-negative|must be >= 0|--replicas" k scale deployment web --replicas=-1
expect "scale of what is not there" 1 'deployments.apps "none" not found' k scale deployment none --replicas=1
expect "scale of what has none" 1 "could not find the requested resource|not found|no kind" k scale serviceaccount default --replicas=1
says "scale in a dry run" "scaled \(server dry run\)" k scale deployment web --replicas=9 --dry-run=server
says "keeps nothing" "^1$" at deployment/web '{.spec.replicas}'
says "scale a replica set" "scaled" bash -c 'set -e; name=$("$KUBECTL" --kubeconfig "$0" get replicasets -l app=web -o name); "$KUBECTL" --kubeconfig "$0" scale "$name" --replicas=1' "$state/kubeconfig"
says "scale by a file" "scaled" given '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}' scale --replicas=2
says "both are there" "condition met" k wait --for=jsonpath='{.status.readyReplicas}'=2 deployment/web --timeout=30s
says "columns of deployments" "^NAME +READY +UP-TO-DATE +AVAILABLE +AGE$" k get deployments
says "a row of a deployment" "^web +2/2 +2 +2 +[0-9]+[sm]" k get deployments
says "columns of replica sets, wide" "^NAME +DESIRED +CURRENT +READY +AGE +CONTAINERS +IMAGES +SELECTOR$" k get replicasets -o wide

# ── set ───────────────────────────────────────────────────────────────────────────────────────
says "set image" "deployment.apps/web image updated" k set image deployment/web nginx=nginx:2
says "it is set" "^nginx:2$" image
says "set image of every container" "image updated" k set image deployment/web '*=nginx:3'
says "set image of all" "deployment.apps/web image updated" k set image deployments --all nginx=nginx:4
expect "set image of a container that it has not" 1 'unable to find container named "side"' k set image deployment/web side=nginx:1
says "set image in a dry run" "image: nginx:9" k set image deployment/web nginx=nginx:9 --dry-run=client -o yaml
says "set image of a file" "image: nginx:8" bash -c '"$KUBECTL" --kubeconfig "$0" get deployment web -o json > "$1/web.json"; "$KUBECTL" --kubeconfig "$0" set image -f "$1/web.json" nginx=nginx:8 --local -o yaml' "$state/kubeconfig" "$home"
says "neither is kept" "^nginx:4$" image
says "set env" "deployment.apps/web env updated" k set env deployment/web COLOUR=red SIZE=large
says "set env, listed" "^COLOUR=red$" k set env deployment/web --list
says "one away, another value" "env updated" k set env deployment/web SIZE- COLOUR=blue --overwrite
says "what is left" "^COLOUR=blue $" variables
expect "set env without overwriting" 1 "already has a value|--overwrite is false" k set env deployment/web COLOUR=green --overwrite=false
k create configmap words --from-literal=FIRST=1 --from-literal=SECOND=2 > /dev/null
says "set env from a config map" "env updated" k set env deployment/web --from=configmap/words --keys=FIRST --prefix=W_
says "is a reference" "W_FIRST=FIRST" variables
says "set env, resolved" "^W_FIRST=1" k set env deployment/web --list --resolve
says "set resources" "resource requirements updated" k set resources deployment/web -c=nginx --limits=cpu=200m,memory=64Mi --requests=cpu=10m
says "they are set, and limits are no requests" '^\{"limits":\{"cpu":"200m","memory":"64Mi"\},"requests":\{"cpu":"10m"\}\}$' at deployment/web '{.spec.template.spec.containers[0].resources}'
expect "requests above limits" 1 "must be less than or equal to cpu limit" k set resources deployment/web --limits=cpu=1m --requests=cpu=10m
says "resources away" "resource requirements updated" k set resources deployment/web --limits=cpu=0,memory=0 --requests=cpu=0
k create serviceaccount robot > /dev/null
says "set serviceaccount" "serviceaccount updated" k set sa deployment web robot
says "it is set so" "^robot robot$" at deployment/web '{.spec.template.spec.serviceAccountName} {.spec.template.spec.serviceAccount}'
k create service clusterip front --tcp=80 > /dev/null
says "set selector" "selector updated" k set selector service front 'app=web,side=none'
says "it selects so" '^\{"app":"web","side":"none"\}$' at service/front '{.spec.selector}'

# ── rollout ───────────────────────────────────────────────────────────────────────────────────
says "the last of them is rolled out" "successfully rolled out" k rollout status deployment/web --timeout=90s
says "all others are scaled to nothing" "condition met" k wait --for=jsonpath='{.status.replicas}'=2 deployment/web --timeout=30s
says "history" "^REVISION +CHANGE-CAUSE$" k rollout history deployment/web
says "why is told by an annotation" "annotated" k annotate deployment web kubernetes.io/change-cause='because of it'
eventually "and shown" "because of it$" k rollout history deployment/web
says "one revision" "Image:[[:space:]]+nginx:2" k rollout history deployment/web --revision=2
expect "a revision that is not there" 1 "unable to find the specified revision" k rollout history deployment/web --revision=99
says "undo to the first" "^deployment.apps/web rolled back$" k rollout undo deployment/web --to-revision=1
says "its image" "^nginx:1$" image
says "it is rolled back" "successfully rolled out" k rollout status deployment/web --timeout=60s
says "the revision is counted on" "^[0-9]+$" at deployment/web '{.metadata.annotations.deployment\.kubernetes\.io/revision}'
expect "the first is there no more" 1 "unable to find specified revision 1 in history|unable to find" k rollout undo deployment/web --to-revision=1
says "undo in a dry run" "rolled back \(server dry run\)|Pod Template" k rollout undo deployment/web --dry-run=server
says "pause" "^deployment.apps/web paused$" k rollout pause deployment/web
expect "pause again" 1 "is already paused" k rollout pause deployment/web
says "a change while it is paused" "image updated" k set image deployment/web nginx=nginx:5
says "is not rolled out" "^0$" bash -c '"$KUBECTL" --kubeconfig "$0" get replicasets -l app=web -o wide | grep -c nginx:5; true' "$state/kubeconfig"
expect "undo while it is paused" 1 "cannot rollback a paused deployment" k rollout undo deployment/web
expect "restart while it is paused" 1 "can't restart paused deployment" k rollout restart deployment/web
says "resume" "^deployment.apps/web resumed$" k rollout resume deployment/web
expect "resume again" 1 "is not paused" k rollout resume deployment/web
says "it is rolled out now" "successfully rolled out" k rollout status deployment/web --timeout=60s
says "restart" "^deployment.apps/web restarted$" k rollout restart deployment/web
says "restart is an annotation of the template" "^20[0-9-]+T" at deployment/web '{.spec.template.metadata.annotations.kubectl\.kubernetes\.io/restartedAt}'
says "status, not waiting" "Waiting for deployment|successfully rolled out" k rollout status deployment/web --watch=false
says "status, waiting" "successfully rolled out" k rollout status deployment/web --timeout=60s
# Not twice within a second.
eventually "restart by label" "deployment.apps/web restarted" k rollout restart deployment -l app=web
says "it is restarted" "successfully rolled out" k rollout status deployment/web --timeout=60s
says "a deployment that cannot come up" "created" given '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"stuck"},"spec":{"progressDeadlineSeconds":1,"selector":{"matchLabels":{"app":"stuck"}},"template":{"metadata":{"labels":{"app":"stuck"}},"spec":{"schedulingGates":[{"name":"example.org/closed"}],"containers":[{"name":"c","image":"nginx:1"}]}}}}' create
expect "is told to be late" 1 'exceeded its progress deadline' k rollout status deployment/stuck --timeout=30s
expect "is waited for no longer" 1 "timed out|exceeded its progress deadline" k rollout status deployment/stuck --timeout=1s
expect "rollout of what has none" 1 "no visitor method exists" k rollout history service/front
expect "rollout of what is not there" 1 'deployments.apps "none" not found' k rollout status deployment/none

# ── stateful sets ─────────────────────────────────────────────────────────────────────────────
db() {
  printf '{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db"},"spec":{"serviceName":"db","replicas":%s,"selector":{"matchLabels":{"app":"db"}},"template":{"metadata":{"labels":{"app":"db"}},"spec":{"terminationGracePeriodSeconds":1,"containers":[{"name":"c","image":"%s"}]}}}}' "$1" "$2"
}
says "a stateful set" "created" given "$(db 2 nginx:1)" apply
says "status of a stateful set" "roll(ing|ed)? ?out complete|rolling update complete" k rollout status statefulset/db --timeout=60s
says "columns of stateful sets" "^NAME +READY +AGE$" k get statefulsets
says "a row of a stateful set" "^db +2/2 +[0-9]+[sm]" k get statefulsets
says "set image of a stateful set" "image updated" k set image statefulset/db c=nginx:2
# Between the old one and the new one there is none.
eventually "the last pod is the first" "condition met" k wait --for=jsonpath='{.spec.containers[0].image}'=nginx:2 pod/db-1 --timeout=40s
says "it comes to an end" "rolling update complete|roll out complete" k rollout status statefulset/db --timeout=60s
says "history of a stateful set" "^2 +<none>$" k rollout history statefulset/db
says "undo of a stateful set" "statefulset.apps/db rolled back" k rollout undo statefulset/db
says "its image is the first" "^nginx:1$" at statefulset/db '{.spec.template.spec.containers[0].image}'
says "restart of a stateful set" "statefulset.apps/db restarted" k rollout restart statefulset/db
says "scale of a stateful set" "scaled" k scale statefulset db --replicas=1
says "the last goes" "condition met|^$" k wait --for=delete pod/db-1 --timeout=60s
expect "and the first stays" 1 'pods "db-1" not found' k get pods db-0 db-1
expect "what may not change of a stateful set" 1 "updates to statefulset spec for fields other than 'replicas'" k patch statefulset db -p '{"spec":{"serviceName":"other"}}'

# ── autoscale ─────────────────────────────────────────────────────────────────────────────────
says "autoscale" "autoscaled" k autoscale deployment web --min=1 --max=3 --cpu-percent=50
says "columns of autoscalers" "^NAME +REFERENCE +TARGETS +MINPODS +MAXPODS +REPLICAS +AGE$" k get hpa
expect "autoscale to less than nothing" 1 "--max=MAXPODS|max" k autoscale deployment web --min=3 --max=1
