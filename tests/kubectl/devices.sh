# Devices that pods claim: given with the place, told to the claim, given back. Sourced by tests/kubectl/run.

needs plane || { leave_out; return 0; }

up --simulated-nodes 1 || exit 1
# cards: two of one driver, for all nodes, with a template that asks for one of them.
given '
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: card}
spec: {selectors: [{cel: {expression: device.driver == "cards.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: rack}
spec:
  driver: cards.example.com
  allNodes: true
  pool: {name: rack, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: card-0, attributes: {model: {string: big}}}
  - {name: card-1, attributes: {model: {string: small}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-card}
spec: {spec: {devices: {requests: [{name: card, exactly: {deviceClassName: card}}]}}}
' apply > /dev/null
# claimant NAME COUNT: a vcjob of so many workers with a card each, which run for an hour.
claimant() {
  printf '%s\n' "
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: $1}
spec:
  minAvailable: $2
  schedulerName: volcano
  tasks:
  - name: w
    replicas: $2
    template:
      metadata: {annotations: {katmai.dev/sim-duration: 1h}}
      spec:
        nodeSelector: {katmai.dev/simulated: 'true'}
        tolerations: [{operator: Exists}]
        resourceClaims: [{name: card, resourceClaimTemplateName: one-card}]
        containers: [{name: c, image: busybox, resources: {requests: {cpu: 1}, claims: [{name: card}]}}]"
}
given "$(claimant first 2)" apply > /dev/null
eventually "a gang with cards runs" "^first +Running" k get vcjob first
says "each worker has a claim of its own" "^first-w-0-card-[a-z0-9]+ +allocated,reserved " k get resourceclaims
says "with a card of its own" '^card-0 card-1 $' bash -c '"$KUBECTL" --kubeconfig "$0" get resourceclaims -o jsonpath="{range .items[*].status.allocation.devices.results[*]}{.device}{\"\n\"}{end}" | sort | tr "\n" " "' "$state/kubeconfig"
says "a pod knows its claim" "^first-w-0-card-" k get pod first-w-0 -o jsonpath='{.status.resourceClaimStatuses[0].resourceClaimName}'
says "describe shows who has it" "Name: +first-w-0" k describe resourceclaims
given "$(claimant second 1)" apply > /dev/null
eventually "the next gang waits for devices, and says so" "0 of 1 tasks fit.*devices" k get pod second-w-0 -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}'
eventually "which the scheduler says, too, when it is asked" "devices" k get explanation vcjob.second -o yaml
says "its claim has nothing" "^second-w-0-card-[a-z0-9]+ +pending " k get resourceclaims
k delete vcjob first --wait=false > /dev/null
eventually "what is given back goes to it" "^second +Running" k get vcjob second
eventually "and the claims of the first have gone" "^1$" bash -c '"$KUBECTL" --kubeconfig "$0" get resourceclaims --no-headers | wc -l' "$state/kubeconfig"
expect "a selector that does not compile is refused" 1 "spec.selectors\[0\].cel.expression" given '
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: wrong}
spec: {selectors: [{cel: {expression: device.nothing}}]}' apply
given '
apiVersion: v1
kind: Pod
metadata: {name: lost}
spec:
  schedulerName: volcano
  resourceClaims: [{name: card, resourceClaimTemplateName: nobody-made-it}]
  containers: [{name: c, image: busybox, resources: {claims: [{name: card}]}}]' apply > /dev/null
eventually "a template that is not there is told" 'resource claim template "nobody-made-it" not found' k events --for pod/lost
needs nothing
