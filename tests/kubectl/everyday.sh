# What people type every day at a cluster: workloads, roll-outs, applying by server, everyday life of nodes.

up --image-map "tests/kubectl/manifests/images.yaml" --simulated-nodes 2 || exit 1

namespaced() { k -n everyday "$@"; }
with_() { # with_ MANIFEST VERB…: in the namespace
  local manifest=$1; shift
  given "$manifest" -n everyday "$@"
}

says "create namespace everyday" "created" k create namespace everyday

# Every generator of `kubectl create`.
says "create deployment" "deployment.apps/web created" namespaced create deployment web --image=nginx:1 --replicas=2
says "create cronjob" "cronjob.batch/tick created" namespaced create cronjob tick --image=nginx:1 --schedule='*/5 * * * *' -- true
says "create job" "job.batch/once created" namespaced create job once --image=nginx:1 -- true
says "create job from a cronjob" "job.batch/tick-now created" namespaced create job tick-now --from=cronjob/tick
says "create service clusterip" "service/front created" namespaced create service clusterip front --tcp=80:8080
says "create service nodeport" "service/open created" namespaced create service nodeport open --tcp=80:8080
says "create service externalname" "service/far created" namespaced create service externalname far --external-name example.org
says "create serviceaccount" "serviceaccount/robot created" namespaced create serviceaccount robot
says "create role" "role.rbac.authorization.k8s.io/reader created" namespaced create role reader --verb=get,list --resource=pods
says "create rolebinding" "rolebinding.rbac.authorization.k8s.io/reads created" \
  namespaced create rolebinding reads --role=reader --serviceaccount=everyday:robot
says "create clusterrole" "clusterrole.rbac.authorization.k8s.io/nodes-reader created" k create clusterrole nodes-reader --verb=get --resource=nodes
says "create clusterrolebinding" "clusterrolebinding.rbac.authorization.k8s.io/nodes-read created" \
  k create clusterrolebinding nodes-read --clusterrole=nodes-reader --serviceaccount=everyday:robot
says "create quota" "resourcequota/limits created" namespaced create quota limits --hard=configmaps=50
says "create poddisruptionbudget" "poddisruptionbudget.policy/keep created" namespaced create poddisruptionbudget keep --selector=app=web --min-available=1
says "create priorityclass" "priorityclass.scheduling.k8s.io/soon created" k create priorityclass soon --value=100 --description=soon
says "create configmap from a file" "configmap/kept created" namespaced create configmap kept --from-file=README.md
says "create secret docker-registry" "secret/pull created" \
  namespaced create secret docker-registry pull --docker-username=a --docker-password=b --docker-email=c@example.org
says "create token bound to an account" "^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+" namespaced create token robot --duration=20m --audience=there

# Workloads.
says "rollout status" "successfully rolled out" namespaced rollout status deployment/web --timeout=30s
says "deployments have upstream's columns" "NAME +READY +UP-TO-DATE +AVAILABLE +AGE" namespaced get deployments
says "replica sets too" "NAME +DESIRED +CURRENT +READY +AGE" namespaced get replicasets
says "scale" "deployment.apps/web scaled" namespaced scale deployment/web --replicas=3
says "the third one starts" "condition met" namespaced wait --for=jsonpath='{.status.readyReplicas}'=3 deployment/web --timeout=30s
says "set image" "image updated" namespaced set image deployment/web nginx=nginx:2
says "the new version is rolled out" "successfully rolled out" namespaced rollout status deployment/web --timeout=60s
says "rollout history knows two revisions" "^2 " namespaced rollout history deployment/web
says "rollout undo" "rolled back" namespaced rollout undo deployment/web
says "back on the first image" "condition met" namespaced wait --for=jsonpath='{.spec.template.spec.containers[0].image}'=nginx:1 deployment/web --timeout=30s
says "rollout pause" "paused" namespaced rollout pause deployment/web
says "rollout resume" "resumed" namespaced rollout resume deployment/web
says "rollout restart" "restarted" namespaced rollout restart deployment/web
says "it is rolled out again" "successfully rolled out" namespaced rollout status deployment/web --timeout=60s
says "set env" "env updated" namespaced set env deployment/web COLOUR=red
says "set resources" "resource requirements updated" namespaced set resources deployment/web --limits=cpu=200m --requests=cpu=10m
says "set serviceaccount" "serviceaccount updated" namespaced set serviceaccount deployment/web robot
says "set selector" "selector updated" namespaced set selector service/front app=web
says "expose" "service/web exposed" namespaced expose deployment web --port=80 --target-port=8080
says "endpoints appear" "condition met" namespaced wait --for=jsonpath='{.endpoints[0].conditions.ready}'=true endpointslice -l kubernetes.io/service-name=web --timeout=30s
says "autoscale is accepted" "autoscaled" namespaced autoscale deployment web --min=1 --max=3 --cpu-percent=50
says "cronjobs have upstream's columns" "NAME +SCHEDULE +TIMEZONE +SUSPEND +ACTIVE +LAST SCHEDULE +AGE" namespaced get cronjobs
says "a stateful set starts in order" "statefulset.apps/db created" with_ '
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "nginx:1"}]}
' create
says "both are ready" "partitioned roll out complete|rolling update complete|roll out complete" namespaced rollout status statefulset/db --timeout=60s
says "its pods are numbered" "db-0 db-1" namespaced get pods -l app=db -o jsonpath='{.items[*].metadata.name}'
says "describe deployment" "StrategyType: +RollingUpdate" namespaced describe deployment web
says "describe cronjob" "Schedule: +\*/5" namespaced describe cronjob tick
says "describe quota" "configmaps +[0-9]+ +50" namespaced describe quota limits
says "describe poddisruptionbudget" "Allowed disruptions" namespaced describe poddisruptionbudget keep
says "describe role" "pods +\[\] +\[\] +\[get list\]" namespaced describe role reader
says "describe service" "Endpoints:" namespaced describe service web
says "describe namespace" "Resource Quotas|No resource quota" k describe namespace everyday

# Output.
says "get -o wide" "CONTAINERS +IMAGES +SELECTOR" namespaced get deployment web -o wide
says "get -o name" "^deployment.apps/web$" namespaced get deployment web -o name
says "get -o custom-columns" "^web +nginx:1" namespaced get deployment -o custom-columns=N:.metadata.name,I:.spec.template.spec.containers[0].image --no-headers
says "get -o go-template" "^web" namespaced get deployment web -o go-template='{{.metadata.name}}'
says "get --sort-by" "web-" namespaced get pods --sort-by=.metadata.creationTimestamp
says "get --show-labels" "app=web" namespaced get pods --show-labels
says "get -L" "APP" namespaced get pods -L app
says "get -A" "everyday" k get pods -A
says "get by set selector" "web-" namespaced get pods -l 'app in (web,other),app!=other'
says "get by field selector" "web-" namespaced get pods --field-selector status.phase=Running
says "get --raw" '"kind":"APIVersions"|"versions"' k get --raw /api
says "get --chunk-size" "db-1" namespaced get pods --chunk-size=1
says "get --show-managed-fields" "managedFields" namespaced get deployment web -o yaml --show-managed-fields

# Applying by server.
one='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"a":"1"}}'
two='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"a":"2","b":"2"}}'
says "apply --server-side creates" "configmap/shared serverside-applied" with_ "$one" apply --server-side --field-manager=first
expect "a conflict is told with its owner" 1 'conflict with "first": .data.a' with_ "$two" apply --server-side --field-manager=second
says "--force-conflicts takes the field over" "serverside-applied" with_ "$two" apply --server-side --field-manager=second --force-conflicts
says "the other's value is there" "^2$" namespaced get configmap shared -o jsonpath='{.data.a}'
says "the first manager owns it no more" "second" namespaced get configmap shared -o jsonpath='{.metadata.managedFields[*].manager}' --show-managed-fields
says "what a manager leaves out goes" "serverside-applied" with_ "$one" apply --server-side --field-manager=second --force-conflicts
says "it is gone" '^{"a":"1"}$' namespaced get configmap shared -o jsonpath='{.data}'
says "apply --server-side of a vcjob" "serverside-applied" k -n everyday apply --server-side -f examples/late-claim.yaml
says "client-side apply can be taken over" "serverside-applied" bash -c '
  printf %s "$2" | "$0" --kubeconfig "$1" -n everyday apply -f - && printf %s "$2" | "$0" --kubeconfig "$1" -n everyday apply --server-side -f -' \
  "$KUBECTL" "$state/kubeconfig" '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"grown"},"data":{"a":"1"}}'
expect "diff --server-side shows what would change" 1 "\+ +a: \"9\"" with_ '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"a":"9"}}' \
  diff --server-side --field-manager=second --force-conflicts
mkdir -p "$home/set"
for name in p q; do
  printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, labels: {set: x}}\n' $name > "$home/set/$name.yaml"
done
says "apply of a folder" "configmap/q created" namespaced apply -f "$home/set" --prune -l set=x
rm "$home/set/q.yaml"
says "--prune removes what is not there any more" "configmap/q pruned" namespaced apply -f "$home/set" --prune -l set=x
says "apply view-last-applied" "name: p" namespaced apply view-last-applied configmap p
says "apply --dry-run=server" "created \(server dry run\)" with_ '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"dry"}}' apply --dry-run=server
expect "and nothing was kept" 1 "not found" namespaced get configmap dry
says "replace" "replaced" with_ '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"z":"1"}}' replace
says "replace --force" "replaced" with_ '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"z":"2"}}' replace --force
expect "a warning for an unknown field" 0 'Warning: unknown field "dta"' with_ '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"typo"},"dta":{}}' create --validate=warn
says "patch --subresource" "patched" namespaced patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":2}}'
says "label --overwrite" "labeled" namespaced label configmap shared a=1 --overwrite
says "label away" "unlabeled" namespaced label configmap shared a-
says "annotate away" "annotate" namespaced annotate configmap shared why-

# Nodes.
says "taint" "tainted" k taint node sim-node-1 special=yes:NoSchedule
says "a taint is shown" "special=yes:NoSchedule" k describe node sim-node-1
says "taint away" "untainted" k taint node sim-node-1 special-
says "drain --dry-run" "drained" k drain sim-node-1 --ignore-daemonsets --dry-run=server
says "a pod on that node" "created" namespaced run evictee --image=nginx:1 --overrides='{"spec":{"nodeName":"sim-node-1"}}'
says "drain evicts it" "evicting pod everyday/evictee" k drain sim-node-1 --ignore-daemonsets --force --delete-emptydir-data --timeout=30s
expect "it is gone" 1 'pods "evictee" not found' namespaced get pod evictee
says "uncordon" "uncordoned" k uncordon sim-node-1

# Who may what.
says "can-i --list" "Resources" k auth can-i --list
says "whoami" "system:masters" k auth whoami
says "an account may what its role says" "web-" bash -c '
  token=$("$0" --kubeconfig "$1" -n everyday create token robot)
  "$0" --kubeconfig "$1" config view --raw --minify -o jsonpath="{.clusters[0].cluster.certificate-authority-data}" | base64 -d > "$2/ca"
  server=$("$0" --kubeconfig "$1" config view --minify -o jsonpath="{.clusters[0].cluster.server}")
  "$0" --kubeconfig /dev/null --server "$server" --certificate-authority "$2/ca" --token "$token" -n everyday get pods' "$KUBECTL" "$state/kubeconfig" "$home"
expect "and no more" 1 'Forbidden.*User "system:serviceaccount:everyday:robot" cannot list resource "secrets"' bash -c '
  token=$("$0" --kubeconfig "$1" -n everyday create token robot)
  server=$("$0" --kubeconfig "$1" config view --minify -o jsonpath="{.clusters[0].cluster.server}")
  "$0" --kubeconfig /dev/null --server "$server" --certificate-authority "$2/ca" --token "$token" -n everyday get secrets' "$KUBECTL" "$state/kubeconfig" "$home"

# Explaining.
says "explain has prose" "DESCRIPTION:" k explain deployment.spec.strategy
says "explain tells what a kind is" "^    [A-Z][a-z]+ is .{20}" k explain pod
says "explain tells what a field is" "^    [A-Z].{40}" k explain pod.spec.activeDeadlineSeconds
expect "explain has a text for every field of a pod's spec" 1 "^$" bash -c '
  "$0" --kubeconfig "$1" explain pod.spec | grep -F "<no description>"' "$KUBECTL" "$state/kubeconfig"
cat > "$home/walls.yaml" << 'YAML'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: walls.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: walls, singular: wall, kind: Wall}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: A wall keeps things apart.
        properties:
          spec: {type: object, description: What is wanted., properties: {colour: {type: string, description: What it is painted with.}}}
YAML
says "a definition with descriptions" "walls.example.org created" k apply -f "$home/walls.yaml"
says "a definition is waited for" "condition met" k wait --for=condition=Established crd/walls.example.org
eventually "explain tells what a definition says of its kind" "A wall keeps things apart" k explain wall
says "explain tells what a definition says of its fields" "What it is painted with" k explain wall.spec.colour
says "a definition goes" "deleted" k delete crd walls.example.org
says "explain knows types" "<integer>" k explain deployment.spec.replicas
says "explain --recursive" "maxSurge" k explain deployment.spec --recursive
says "api-resources by group" "statefulsets +sts" k api-resources --api-group=apps
says "api-versions" "^batch/v1$" k api-versions
says "cluster-info" "is running at" k cluster-info
says "events of one object" "ScalingReplicaSet|Scaled" namespaced events --for deployment/web
says "options of delete: orphans stay" "deleted" namespaced delete deployment web --cascade=orphan
says "the replica sets stayed" "web-" namespaced get replicasets
says "delete --cascade=foreground" "deleted" namespaced delete statefulset db --cascade=foreground --timeout=60s
says "no pod of it is left" "^$|No resources" namespaced get pods -l app=db
says "delete --now" "deleted" namespaced delete pod -l app=web --now
says "delete --all" "deleted" namespaced delete configmaps --all
says "delete --dry-run" "deleted \(server dry run\)" k delete namespace everyday --dry-run=server
says "delete the namespace" 'namespace "everyday" deleted' k delete namespace everyday --timeout=60s
says "delete several kinds by name" 'priorityclass.scheduling.k8s.io "soon" deleted' \
  k delete clusterrole/nodes-reader clusterrolebinding/nodes-read priorityclass/soon
