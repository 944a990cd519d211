# What is there and who may do it: explain, api-resources, auth, events, cluster-info. Sourced by
# tests/kubectl/run.

up --image-map tests/kubectl/manifests/images.yaml || exit 1

# ── explain ───────────────────────────────────────────────────────────────────────────────────
says "explain a kind" "^KIND: +Deployment$" k explain deployment
says "its group" "^GROUP: +apps$" k explain deployment
says "its version" "^VERSION: +v1$" k explain deployments.apps
says "a field" "^FIELD: replicas <integer>$" k explain deployment.spec.replicas
says "a list" "^FIELD: containers <\[\]Container>$" k explain pod.spec.containers
says "a map" "<map\[string\]string>" k explain configmap.data
says "which fields are needed" "containers[[:space:]]+<\[\]Container> -required-" k explain pod.spec
says "what values there are" "^    Recreate$" k explain deployment.spec.strategy.type
says "that they are values" "^ENUM:$" k explain deployment.spec.strategy.type
says "the values of a part that many have" "^    IfNotPresent$" k explain pod.spec.containers.imagePullPolicy
says "all fields below" "^        maxSurge[[:space:]]" k explain deployment --recursive
says "all fields below one" "^  secretKeyRef[[:space:]]" k explain pod.spec.containers.env.valueFrom --recursive
says "a version" "^VERSION: +v1$" k explain cronjobs --api-version=batch/v1
says "a kind of Volcano" "^GROUP: +batch.volcano.sh$" k explain vcjob
says "its fields, all below" "minAvailable" k explain vcjob --recursive
expect "a field that is not there" 1 'field "nothing" does not exist' k explain pod.spec.nothing
expect "a kind that is not there" 1 "the server doesn't have a resource type \"frob\"" k explain frob

# ── what is there ─────────────────────────────────────────────────────────────────────────────
says "api-resources" "^NAME +SHORTNAMES +APIVERSION +NAMESPACED +KIND$" k api-resources
says "a row" "^pods +po +v1 +true +Pod$" k api-resources
says "wide" "^configmaps +cm +v1 +true +ConfigMap +create,delete,deletecollection,get,list,patch,update,watch" k api-resources -o wide
says "as names" "^deployments.apps$" k api-resources -o name
says "of a group" "^jobs +batch/v1 +true +Job$" k api-resources --api-group=batch
says "without a namespace" "^nodes +no +v1 +false +Node$" k api-resources --namespaced=false
says "none with a namespace is among them" "^0$" bash -c '"$KUBECTL" --kubeconfig "$0" api-resources --namespaced=false | grep -c " true "; true' "$state/kubeconfig"
says "by verbs" "^selfsubjectreviews.authentication.k8s.io$" k api-resources --verbs=create -o name
says "what can be created only is not listed" "^0$" bash -c '"$KUBECTL" --kubeconfig "$0" api-resources --verbs=list,create -o name | grep -c selfsubject; true' "$state/kubeconfig"
says "by category" "^statefulsets +sts" k api-resources --categories=all
says "sorted by kind" "^configmaps" k api-resources --sort-by=kind
says "no headers" "^configmaps +cm" k api-resources --no-headers
says "jobs are Kubernetes' own" "^NAME +STATUS +COMPLETIONS|No resources found" k get jobs
says "Volcano's have another name" "^vcjob|vj" bash -c '"$KUBECTL" --kubeconfig "$0" api-resources --api-group=batch.volcano.sh | grep -o "vcjob,vj\|vcjob\|vj"' "$state/kubeconfig"
says "api-versions" "^apps/v1$" k api-versions
says "version as JSON" '"gitVersion": "v1' k version -o json
says "healthy" "^ok$" k get --raw /healthz
says "ready" "^ok$" k get --raw /readyz
says "alive" "^ok$" k get --raw /livez
says "the addresses" '"/apis/apps/v1"' k get --raw /
says "documents of groups" '"apis/apps/v1": ?\{ *"serverRelativeURL"' bash -c '"$KUBECTL" --kubeconfig "$0" get --raw /openapi/v3 | tr -d "\n" | tr -s " "' "$state/kubeconfig"
expect "an address that is not there" 1 "the server could not find the requested resource" k get --raw /apis/nothing/v1

# ── who may ───────────────────────────────────────────────────────────────────────────────────
says "can-i" "^yes$" k auth can-i create pods
says "can-i a subresource" "^yes$" k auth can-i get pods --subresource=log
says "can-i an address" "^yes$" k auth can-i get /healthz
says "can-i anywhere" "^yes$" k auth can-i '*' '*' -A
says "can-i of what is not there" "^Warning: the server doesn't have a resource type 'frobs'" k auth can-i get frobs
expect "another may not" 1 "^no$" k auth can-i list secrets --as=jane
here=$(k config view --minify -o jsonpath='{..namespace}')
here=${here:-default}
k create role reads --verb=get,list --resource=pods > /dev/null
k create rolebinding reads --role=reads --user=jane --group=readers > /dev/null
says "until a role says so" "^yes$" k auth can-i list pods --as=jane
says "or the group's" "^yes$" k auth can-i list pods --as=joe --as-group=readers
expect "but nothing else" 1 "^no$" k auth can-i delete pods --as=jane
expect "quietly" 1 "^$" k auth can-i delete pods --as=jane -q
expect "and nowhere else" 1 "^no$" k auth can-i list pods --as=jane -n kube-system
says "can-i --list" "^pods +\[\] +\[\] +\[get list\]$" k auth can-i --list --as=jane
says "can-i --list of the first" "^\*\.\* +\[\] +\[\] +\[\*\]$" k auth can-i --list
says "whoami" "^Groups +\[system:masters" k auth whoami
says "whoami as JSON" '"kind": "SelfSubjectReview"' k auth whoami -o json
says "whoami of another" "^Username +jane$" k auth whoami --as=jane --as-group=makers
says "the other's groups" "^Groups +\[makers system:authenticated\]$" k auth whoami --as=jane --as-group=makers
says "as another" "No resources found" k get pods -l nobody=has --as=jane
expect "as another, forbidden" 1 'Error from server \(Forbidden\): configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace' k get configmaps --as=jane
expect "forbidden for all namespaces" 1 'cannot list resource "pods" in API group "" at the cluster scope' k get pods -A --as=jane
expect "nobody gives what he has not" 1 'is attempting to grant RBAC permissions not currently held' bash -c '
  "$KUBECTL" --kubeconfig "$0" create role grants --verb=create --resource=roles.rbac.authorization.k8s.io > /dev/null
  "$KUBECTL" --kubeconfig "$0" create rolebinding grants --role=grants --user=jane > /dev/null
  "$KUBECTL" --kubeconfig "$0" --as=jane create role more --verb=get --resource=secrets' "$state/kubeconfig"
says "reconcile" "role.rbac.authorization.k8s.io/reads reconciled" given '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reads","namespace":"'"$here"'"},"rules":[{"apiGroups":[""],"resources":["pods","services"],"verbs":["get"]}]}' auth reconcile
says "what was missing is added" "^yes$" k auth can-i get services --as=jane
says "what was there stays" "^yes$" k auth can-i list pods --as=jane

# ── events ────────────────────────────────────────────────────────────────────────────────────
k create deployment web --image=nginx:1 > /dev/null
k rollout status deployment/web --timeout=30s > /dev/null
says "events" "^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE$" k events
eventually "of one object" "ScalingReplicaSet +Deployment/web +Scaled up replica set web-[a-z0-9]+ (from 0 )?to 1" k events --for deployment/web
says "of a type" "Normal" k events --types=Normal
says "of another type" "No events found|Warning" k events --types=Warning
says "of everywhere" "^NAMESPACE +LAST SEEN" k events -A
says "as JSON" '"reason": "ScalingReplicaSet"' k events --for deployment/web -o json
says "by fields" "web-" k get events --field-selector reason=SuccessfulCreate
says "by their object" "ScalingReplicaSet" k get events --field-selector involvedObject.kind=Deployment,involvedObject.name=web
says "sorted by when" "ScalingReplicaSet" k get events --sort-by=.metadata.creationTimestamp
says "in the other group" "ScalingReplicaSet" k get events.events.k8s.io
says "as they come" "ScalingReplicaSet" bash -c 'timeout 3 "$KUBECTL" --kubeconfig "$0" events --for deployment/web --watch; true' "$state/kubeconfig"
says "describe tells them" "ScalingReplicaSet" k describe deployment web
says "describe without events" "^0$" bash -c '"$KUBECTL" --kubeconfig "$0" describe deployment web --show-events=false | grep -c ScalingReplicaSet; true' "$state/kubeconfig"

# ── describe ──────────────────────────────────────────────────────────────────────────────────
says "describe by label" "^Name: +web-" k describe pods -l app=web
says "describe by the beginning of a name" "^Name: +web-" k describe pod web
says "describe of a replica set" "^Replicas: +1 current / 1 desired$" k describe replicaset -l app=web
says "describe of a deployment's state" "^Replicas: +1 desired \| 1 updated \| 1 total \| 1 available \| 0 unavailable$" k describe deployment web
says "describe of a config map" "^Data$" k describe configmap kube-root-ca.crt
says "describe of an account" "^Image pull secrets: +<none>$" k describe serviceaccount default
says "describe of a role binding" "^  User   jane" k describe rolebinding reads
says "describe of a storage class" "^Provisioner: +katmai.dev/directory$" k describe storageclass standard
says "describe of a priority class" "^Value: +2000001000$" k describe priorityclass system-node-critical
says "describe of a node" "^Non-terminated Pods:" k describe node node-1
says "describe of a definition" "^Name: +queues.scheduling.volcano.sh$" k describe crd queues.scheduling.volcano.sh
expect "describe of what is not there" 1 'pods "nothing" not found' k describe pod nothing

# ── the cluster ───────────────────────────────────────────────────────────────────────────────
says "cluster-info" "control plane.* is running at .*https://127.0.0.1:" k cluster-info
says "cluster-info dump" '"kind": "NodeList"' k cluster-info dump --namespaces=kube-node-lease
says "cluster-info dump into files" "^nodes.json$" bash -c '"$KUBECTL" --kubeconfig "$0" cluster-info dump --namespaces=kube-node-lease --output-directory="$1/dump" > /dev/null && ls "$1/dump"' "$state/kubeconfig" "$home"
says "namespaces of it" "^deployments.json$" ls "$home/dump/kube-node-lease"
says "the way is described by the kubeconfig" "certificate-authority-data: DATA\+OMITTED" k config view
