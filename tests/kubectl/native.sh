# Kubernetes' own Workload and PodGroup beside Volcano's: off by default, and who is meant by a bare name.

needs plane || { leave_out; return 0; }

up || exit 1
expect "workloads are not there by default" 1 "doesn't have a resource type" k get workloads
down
state=$home/native-on
up --native-groups || exit 1
kind_of() { k explain "$1" | sed -n 's/^GROUP: *//p'; }
says "explain podgroups is Volcano's" "^scheduling.volcano.sh$" kind_of podgroups
says "explain pg is Volcano's" "^scheduling.volcano.sh$" kind_of pg
says "explain workloads is Kubernetes'" "^scheduling.k8s.io$" kind_of workloads
says "explain podgroups.scheduling.k8s.io is Kubernetes'" "^scheduling.k8s.io$" kind_of podgroups.scheduling.k8s.io
says "both versions are listed" "scheduling.k8s.io/v1alpha3" k api-versions
says "a workload and its group" "podgroup.scheduling.k8s.io/ring created" bash -c '"$KUBECTL" --kubeconfig "$0" create -f - <<Y
apiVersion: scheduling.k8s.io/v1beta1
kind: Workload
metadata: {name: train}
spec: {podGroupTemplates: [{name: ring, schedulingPolicy: {gang: {minCount: 4}}}]}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: ring}
spec: {schedulingPolicy: {gang: {minCount: 4}}, workloadRef: {workloadName: train, templateName: ring}}
Y' "$state/kubeconfig"
says "the default is filled in" '^\{"single":\{\}\}$' k get podgroups.scheduling.k8s.io ring -o jsonpath='{.spec.disruptionMode}'
expect "a group's priority may not change" 1 "spec" k patch podgroups.v1beta1.scheduling.k8s.io ring --type=merge -p '{"spec":{"priority":3}}'
says "its count may" "patched" k patch podgroups.v1beta1.scheduling.k8s.io ring --type=merge -p '{"spec":{"schedulingPolicy":{"gang":{"minCount":5}}}}'
