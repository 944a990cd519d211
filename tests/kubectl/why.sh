# Why something waits, asked of the scheduler through the API: with kubectl, by whoever may view a
# namespace, and with `katmai explain`. Sourced by tests/kubectl/run.

needs plane || { leave_out; return 0; }

up --simulated-nodes 2 || exit 1
k create namespace team-a > /dev/null
k create namespace team-b > /dev/null
k create rolebinding sees -n team-a --clusterrole=view --user=jane > /dev/null
# gang NAMESPACE NAME REPLICAS CPU: a vcjob on the imitation nodes, which runs for an hour.
gang() {
  printf '%s\n' "
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: $2, namespace: $1}
spec:
  minAvailable: $3
  schedulerName: volcano
  tasks:
  - name: w
    replicas: $3
    template:
      metadata: {annotations: {katmai.dev/sim-duration: 1h}}
      spec:
        nodeSelector: {katmai.dev/simulated: 'true'}
        tolerations: [{operator: Exists}]
        containers: [{name: c, image: busybox, resources: {requests: {cpu: $4}}}]"
}
given "$(gang team-b secret 1 20)" apply > /dev/null
eventually "somebody runs" "^secret +Running" k get vcjob -n team-b
given "$(gang team-a train 3 16)" apply > /dev/null
eventually "the scheduler says why it waits" "^vcjob.train +(Pending|Inqueue) +[A-Za-z]+ " k get explanation vcjob.train -n team-a
says "with a remedy under wide" "REMEDY" k get explanation vcjob.train -n team-a -o wide
says "as an object" '^kind: Explanation$' k get explanation vcjob.train -n team-a -o yaml
says "by a short name" "^vcjob.train" k get why vcjob.train -n team-a
says "it is among the resources" "^explanations +why +ask.katmai.dev/v1 +true +Explanation$" k api-resources --api-group=ask.katmai.dev
eventually "who may see everything is told who holds the room" '"namespace": *"team-b"|"name": *"secret' k get explanation vcjob.train -n team-a -o json
says "who may view the namespace may ask" "^vcjob.train" k get explanation vcjob.train -n team-a --as=jane
says "and is not told of others" "^0$" bash -c '"$KUBECTL" --kubeconfig "$0" get explanation vcjob.train -n team-a -o json --as=jane | grep -c "team-b\|secret"; true' "$state/kubeconfig"
says "but how many they are" '"count": *[1-9]' k get explanation vcjob.train -n team-a -o json --as=jane
expect "who may not view a namespace may not ask there" 1 "cannot get resource \"explanations\" in API group \"ask.katmai.dev\" in the namespace \"team-b\"" k get explanation vcjob.secret -n team-b --as=jane
expect "what is not there has no explanation" 1 "podgroup.nobody\": there is no such object" k get explanation podgroup.nobody -n team-a
expect "a name that names nothing" 1 "it is KIND.NAME" k get explanation train -n team-a
says "can-i" "^yes$" k auth can-i get explanations.ask.katmai.dev -n team-a --as=jane
needs commands
echo '{actions: "enqueue, allocate", tiers: [{plugins: [{name: gang}, {name: predicates}]}]}' > "$home/rules"
says "katmai explain asks the scheduler" "^podgroup team-a/train-" katmai explain vcjob train -n team-a --data-dir "$state"
says "and says what holds the room" "team-b/secret-" katmai explain vcjob train -n team-a --data-dir "$state"
says "as JSON" '"podGroup":"train-' katmai explain vcjob train -n team-a --data-dir "$state" -o json
expect "of nothing it says so" 1 "there is no such object" katmai explain pod nobody -n team-a --data-dir "$state"
says "by other rules it asks a copy" "^podgroup team-a/train-" katmai explain vcjob train -n team-a --data-dir "$state" --scheduler-conf "$home/rules"
down
up --scheduler-name ours --node-selector katmai.dev/simulated:true --simulated-nodes 1 || exit 1
# lone SCHEDULER CPU: a job of one pod.
lone() {
  printf '%s\n' "
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: lone}
spec:
  minAvailable: 1
  schedulerName: $1
  tasks:
  - replicas: 1
    template:
      spec:
        tolerations: [{operator: Exists}]
        containers: [{name: c, image: busybox, resources: {requests: {cpu: $2}}}]"
}
lone ours 1 > "$home/ours.yaml"; lone volcano 1 > "$home/volcano.yaml"
says "katmai whatif knows whom the plane's scheduler serves" "vcjob default/lone: 1 of 1 pods, on sim-node-1" katmai whatif -f "$home/ours.yaml" --data-dir "$state"
says "and whom not" "vcjob default/lone: scheduler volcano places it, who is not asked here" katmai whatif -f "$home/volcano.yaml" --data-dir "$state"
says "and is told of another" "vcjob default/lone: 1 of 1 pods, on node-1" katmai whatif -f "$home/volcano.yaml" --data-dir "$state" --scheduler-name volcano --node-selector kubernetes.io/hostname:node-1
needs nothing
