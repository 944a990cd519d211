# Every generator of `kubectl create`, with the options that shape what it makes. Sourced by
# tests/kubectl/run.

up --image-map tests/kubectl/manifests/images.yaml || exit 1

at() { k get "$1" -o jsonpath="$2"; }
mkdir -p "$home/files"
printf 'one\ntwo\n' > "$home/files/lines.txt"
printf '\001\377' > "$home/files/bytes"
printf '# a comment\nCOLOUR=red\nSIZE=large\n' > "$home/files/settings.env"

# ── config maps and secrets ───────────────────────────────────────────────────────────────────
says "a config map from a folder" "configmap/folder created" k create configmap folder --from-file="$home/files"
says "its keys are the files' names" "^bytes:2,lines.txt:8,settings.env:[0-9]+" bash -c '
  "$KUBECTL" --kubeconfig "$0" get configmap folder -o go-template="{{range \$k, \$v := .binaryData}}{{\$k}}:2,{{end}}{{range \$k, \$v := .data}}{{\$k}}:{{len \$v}},{{end}}"' "$state/kubeconfig"
says "what is no text is kept as bytes" "^Af8=$" at configmap/folder '{.binaryData.bytes}'
says "a file under another key" "configmap/renamed created" k create configmap renamed --from-file=text="$home/files/lines.txt"
says "the key is the other one" "^one$" at configmap/renamed '{.data.text}'
says "a config map from an environment file" "configmap/env created" k create configmap env --from-env-file="$home/files/settings.env"
says "its keys are the variables" '^\{"COLOUR":"red","SIZE":"large"\}$' at configmap/env '{.data}'
says "a name with a hash of what is in it" "configmap/hashed-[a-z0-9]{10} created" k create configmap hashed --from-literal=a=b --append-hash
expect "a key that is not allowed" 1 'is not a valid key name for a ConfigMap' k create configmap bad --from-literal='a b=c'
expect "a key twice" 1 'cannot add key "a", another key by that name already exists' k create configmap bad --from-literal=a=b --from-literal=a=c
expect "a file that is not there" 1 'no such file or directory' k create configmap bad --from-file=/nowhere/at/all
says "a secret from literals and files" "secret/mixed created" k create secret generic mixed --from-literal=word=open --from-file="$home/files/lines.txt" --type=example.org/mixed
says "its type and values" "^example.org/mixed b3Blbg==$" at secret/mixed '{.type} {.data.word}'
if command -v openssl > /dev/null; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=example.org \
    -keyout "$home/tls.key" -out "$home/tls.crt" 2> /dev/null
  says "a secret for TLS" "secret/tls created" k create secret tls tls --cert="$home/tls.crt" --key="$home/tls.key"
  says "its type" "^kubernetes.io/tls 2$" bash -c 'k() { "$KUBECTL" --kubeconfig "$0" "$@"; }; echo "$(k get secret tls -o jsonpath={.type}) $(k get secret tls -o jsonpath={.data} | grep -o tls[.] | wc -l)"' "$state/kubeconfig"
  expect "a key that does not belong to its certificate" 1 "private key|PEM|failed" k create secret tls bad --cert="$home/tls.crt" --key="$home/tls.crt"
fi
says "a secret for a registry" "secret/registry created" \
  k create secret docker-registry registry --docker-server=example.org --docker-username=a --docker-password=b
says "it holds a login" '"example.org":\{"username":"a","password":"b"' bash -c '"$KUBECTL" --kubeconfig "$0" get secret registry -o jsonpath="{.data.\.dockerconfigjson}" | base64 -d' "$state/kubeconfig"

# ── who may what ──────────────────────────────────────────────────────────────────────────────
says "a role for subresources and names" "role.rbac.authorization.k8s.io/fine created" \
  k create role fine --verb=get,update --resource=deployments.apps/scale --resource-name=web
says "its rules" '^\[\{"apiGroups":\["apps"\],"resourceNames":\["web"\],"resources":\["deployments/scale"\],"verbs":\["get","update"\]\}\]$' at role/fine '{.rules}'
expect "a role for a kind that is not there" 1 "the server doesn't have a resource type|resource type" k create role bad --verb=get --resource=frobs
says "a cluster role for paths" "clusterrole.rbac.authorization.k8s.io/katmai-paths created" k create clusterrole katmai-paths --verb=get --non-resource-url='/healthz/*'
says "a cluster role that gathers others" "clusterrole.rbac.authorization.k8s.io/katmai-all created" k create clusterrole katmai-all --aggregation-rule=example.org/part=yes
says "a part of it" "labeled" k label clusterrole katmai-paths example.org/part=yes
eventually "what it gathers appears in it" "/healthz/\*" at clusterrole/katmai-all '{.rules[*].nonResourceURLs[*]}'
says "a binding for users, groups and accounts" "rolebinding.rbac.authorization.k8s.io/three created" \
  k create rolebinding three --clusterrole=view --user=jane --group=makers --serviceaccount=lab:robot
says "its subjects" "^User/jane Group/makers ServiceAccount/robot $" at rolebinding/three '{range .subjects[*]}{.kind}/{.name} {end}'
says "a binding for the whole cluster" "clusterrolebinding.rbac.authorization.k8s.io/katmai-paths created" k create clusterrolebinding katmai-paths --clusterrole=katmai-paths --group=makers
says "set subject" "rolebinding.rbac.authorization.k8s.io/three subjects updated" k set subject rolebinding three --user=joe
says "one more subject" "^jane makers robot joe$|^jane joe makers robot$|jane.*joe" at rolebinding/three '{.subjects[*].name}'
says "an account" "serviceaccount/robot created" k create serviceaccount robot
says "a token for ten minutes" "^600$" bash -c '
  token=$("$KUBECTL" --kubeconfig "$0" create token robot --duration=10m | cut -d. -f2 | tr _- /+)
  while [ $((${#token} % 4)) -ne 0 ]; do token=$token=; done
  echo "$token" | base64 -d | sed "s/.*\"exp\":\([0-9]*\).*\"iat\":\([0-9]*\).*/\1 - \2/" | { read -r sum; echo $((sum)); }' "$state/kubeconfig"
says "a token as an object" '"expirationTimestamp": "20' k create token robot --audience=there -o json
says "a token bound to a secret" "^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\." k create token robot --bound-object-kind=Secret --bound-object-name=mixed
expect "a token for what is not there" 1 'secrets "nothing" not found|"nothing" not found' k create token robot --bound-object-kind=Secret --bound-object-name=nothing
expect "a token that is too short" 1 "may not specify a duration less than 10 minutes" k create token robot --duration=1m
expect "a token of nobody" 1 'serviceaccounts "nobody" not found' k create token nobody

# ── limits and priorities ─────────────────────────────────────────────────────────────────────
says "a quota with scopes" "resourcequota/lean created" k create quota lean --hard=pods=5 --scopes=BestEffort,NotTerminating
says "its scopes" '^\["BestEffort","NotTerminating"\] 5$' at quota/lean '{.spec.scopes} {.spec.hard.pods}'
expect "a quota with a scope that is none" 1 "unsupported scope|Unsupported value|Forbidden" k create quota bad --hard=pods=5 --scopes=Sideways
says "a budget by how many may be missing" "poddisruptionbudget.policy/loose created" k create pdb loose --selector=app=web --max-unavailable=50%
expect "a budget by both" 1 "min-available.*max-unavailable|cannot be specified" k create pdb bad --selector=app=web --max-unavailable=1 --min-available=1
says "a priority class that does not preempt" "priorityclass.scheduling.k8s.io/katmai-calm created" \
  k create priorityclass katmai-calm --value=7 --preemption-policy=Never --description=calm
says "its value and policy" "^7 Never calm$" at priorityclass/katmai-calm '{.value} {.preemptionPolicy} {.description}'
expect "a value that may not change" 1 "value: Forbidden: may not be changed in an update" k patch priorityclass katmai-calm -p '{"value":8}'
expect "a name that is the system's" 1 "system-" k create priorityclass system-mine --value=7

# ── workloads ─────────────────────────────────────────────────────────────────────────────────
says "a deployment with two containers, a port and a command" "deployment.apps/web created" \
  k create deployment web --image=nginx:1 --port=8080 --replicas=0 -- sleep 6302
says "its template" '^nginx 8080 \["sleep","6302"\]$' at deployment/web '{.spec.template.spec.containers[0].name} {.spec.template.spec.containers[0].ports[0].containerPort} {.spec.template.spec.containers[0].command}'
says "a deployment of two images" "deployment.apps/two created" k create deployment two --image=nginx:1 --image=redis:7 --replicas=0
says "a container for each" "^nginx redis$" at deployment/two '{.spec.template.spec.containers[*].name}'
says "a job" "job.batch/once created" k create job once --image=nginx:1 -- true
says "it completes" "condition met" k wait --for=condition=complete job/once --timeout=30s
says "columns of jobs" "^NAME +STATUS +COMPLETIONS +DURATION +AGE$" k get jobs
says "a row of a job that is done" "^once +Complete +1/1 +[0-9]+s +[0-9]+[sm]" k get jobs
says "a cron job" "cronjob.batch/tick created" k create cronjob tick --image=nginx:1 --schedule='0 0 * * *' --restart=Never -- true
says "a job of it" "job.batch/tick-now created" k create job tick-now --from=cronjob/tick
says "it belongs to it and says how it came" "^CronJob/tick manual$" at job/tick-now '{.metadata.ownerReferences[0].kind}/{.metadata.ownerReferences[0].name} {.metadata.annotations.cronjob\.kubernetes\.io/instantiate}'
expect "a schedule that is none" 1 'Invalid value: "sideways"' k create cronjob bad --image=nginx:1 --schedule=sideways

# ── services ──────────────────────────────────────────────────────────────────────────────────
says "a headless service" "service/heads created" k create service clusterip heads --clusterip=None
says "a service with a port of every node" "service/open created" k create service nodeport open --tcp=80:8080
says "its port is among theirs" "^3[0-2][0-9]{3}$" at service/open '{.spec.ports[0].nodePort}'
says "a service with a load balancer" "service/loaded created" k create service loadbalancer loaded --tcp=443
says "nobody balances it" "^loaded +LoadBalancer +10\.96\.[0-9.]+ +<pending> +443:3[0-9]{4}/TCP" k get service loaded
says "a service that is elsewhere" "service/far created" k create service externalname far --external-name=example.org
says "its row" "^far +ExternalName +<none> +example.org +<none>" k get service far
expect "an address that is no address" 1 'Invalid value: "10.1"|must be a valid IP|invalid IP' k create service clusterip bad --clusterip=10.1 --tcp=80
says "expose" "service/web exposed" k expose deployment web --port=80 --target-port=8080 --name=web --labels=a=b
says "it selects what the deployment selects" '^\{"app":"web"\} 8080$' at service/web '{.spec.selector} {.spec.ports[0].targetPort}'
says "an ingress" "ingress.networking.k8s.io/door created" k create ingress door --class=none --rule='example.org/a*=web:80,tls=tls' --annotation=a=b
says "its rule" "^example.org /a Prefix web 80$" at ingress/door '{.spec.rules[0].host} {.spec.rules[0].http.paths[0].path} {.spec.rules[0].http.paths[0].pathType} {.spec.rules[0].http.paths[0].backend.service.name} {.spec.rules[0].http.paths[0].backend.service.port.number}'
says "columns of ingresses" "^NAME +CLASS +HOSTS +ADDRESS +PORTS +AGE$" k get ingresses
says "an ingress for all" "ingress.networking.k8s.io/all created" k create ingress all --default-backend=web:http
says "describe tells both" "Default backend:  web:http" k describe ingress all

# ── a pod ─────────────────────────────────────────────────────────────────────────────────────
says "run with labels, variables and a port" "pod/bare created" k run bare --image=nginx:1 --labels=a=b,c=d --env=COLOUR=red --port=80 --expose --annotations=e=f
says "what came of it" '^\{"a":"b","c":"d"\} red 80$' at pod/bare '{.metadata.labels} {.spec.containers[0].env[0].value} {.spec.containers[0].ports[0].containerPort}'
says "the service that --expose makes" '^\{"a":"b","c":"d"\}$' at service/bare '{.spec.selector}'
says "run, written but not done" "image: nginx:1" k run paper --image=nginx:1 --dry-run=client -o yaml
says "run, asked of the server but not kept" "phase: Pending" k run paper --image=nginx:1 --dry-run=server -o yaml
expect "neither is there" 1 'pods "paper" not found' k get pod paper

# ── from manifests ────────────────────────────────────────────────────────────────────────────
map='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"plain"},"data":{"a":"1"}}'
says "create -f, with what was applied" "configmap/plain created" given "$map" create --save-config
says "it can be viewed" '^ *a: "1"$' k apply view-last-applied configmap plain
expect "create of what exists" 1 'Error from server \(AlreadyExists\): error when creating "STDIN": configmaps "plain" already exists' given "$map" create
says "create -o" "^configmap/named$" given '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"named"}}' create -o name
says "create --dry-run=client" 'configmap/never created \(dry run\)' given '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"never"}}' create --dry-run=client
says "create --raw" '"name":"unheard"' bash -c 'printf %s "{\"metadata\":{\"name\":\"unheard\"}}" | "$KUBECTL" --kubeconfig "$0" create --raw /api/v1/namespaces/default/configmaps -f -' "$state/kubeconfig"
says "delete --raw" '"status":"Success"' k delete --raw /api/v1/namespaces/default/configmaps/unheard
expect "an unknown field" 1 'strict decoding error: unknown field "dta"' given '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"typo"},"dta":{}}' create
says "an unknown field that is let be" "configmap/typo created" given '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"typo"},"dta":{}}' create --validate=ignore
expect "a value of the wrong type" 1 'cannot unmarshal|expected string|ValidationError|invalid type' given '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"wrong"},"data":{"a":1}}' create
expect "a kind that is not there" 1 'no matches for kind "Frob" in version "example.org/v1"' given '{"apiVersion":"example.org/v1","kind":"Frob","metadata":{"name":"a"}}' create
mkdir -p "$home/kustom"
printf 'namePrefix: all-\nresources: [map.yaml]\nconfigMapGenerator:\n- {name: made, literals: [a=b]}\n' > "$home/kustom/kustomization.yaml"
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n' > "$home/kustom/map.yaml"
says "create -k" "configmap/all-map created" k create -k "$home/kustom"
says "what it generated" "^configmap/all-made-[a-z0-9]{10}$" k get -k "$home/kustom" -o name
says "several at once go" "deleted" k delete clusterrole/katmai-paths clusterrole/katmai-all clusterrolebinding/katmai-paths priorityclass/katmai-calm
