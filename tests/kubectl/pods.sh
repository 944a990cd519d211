# What pods see and how they live. Sourced by tests/kubectl/run.

needs processes || { leave_out; return 0; }

cat > "$home/images.yaml" <<'Y'
images:
- pattern: nginx
  command: [sh, -c, 'echo instead of nginx; sleep 6205']
Y
up --image-map "$home/images.yaml" || exit 1
level=$(grep -o 'pod level\|host level' "$home/up.out")
done_() { k wait --for=jsonpath='{.status.phase}'=Succeeded "$@" --timeout=30s; }

# ── images ────────────────────────────────────────────────────────────────────────────────────
says "an image of the map runs its command" "pod/web created" k run web --image=nginx:1.27
says "it is running" "condition met" k wait --for=condition=Ready pod/web --timeout=20s
says "it did what the map says" "instead of nginx" k logs web
k run redis --image=redis > /dev/null
eventually "an image without a command is told with the way out" "give the container a command, or map the image to one with --image-map" \
  k describe pod redis
says "arguments alone are a command" "words only" \
  k run args --image=busybox --restart=Never --attach --quiet -- sh -c 'sleep 0.5; echo words only'

# ── volumes and environment ───────────────────────────────────────────────────────────────────
if [ "$level" = "pod level" ]; then
  k apply -f tests/kubectl/manifests/volumes.yaml > /dev/null
  k apply -f tests/kubectl/manifests/network.yaml > /dev/null
  says "a pod with every kind of volume ends well" "condition met" done_ pod/volumes
  seen() { k logs volumes -c main; }
  says "init containers ran in order" "^order one two" seen
  says "configMap with items" "^configmap hello$" seen
  says "secret" "^secret 4711$" seen
  says "downward API" '^downward colour="green"$' seen
  says "projected" "^projected hello4711volumes" seen
  says "a claim, whole and by subPath" "^claim kept$" seen
  says "readOnly is held" "^sealed$" seen
  says "env from fields, keys, resources and one another" "^env volumes with 10 bye 4711 hello$" seen
  says "the pod's address is in its environment" "^address known$" seen
  says "the host name is the pod's" "^hostname volumes$" seen

  # ── the pod network ─────────────────────────────────────────────────────────────────────────
  says "a pod that asks two others ends well" "condition met" done_ pod/asker
  seen() { k logs asker; }
  says "a Service by its short name, port is not targetPort" "^by name web I am web-[ab]$" seen
  says "a Service by its full name" "^by name web.default.svc.cluster.local I am web-[ab]$" seen
  says "a Service by its ClusterIP" "^by address I am web-[ab]$" seen
  says "a Service by the environment" "^by environment I am web-[ab]$" seen
  says "pods by the headless Service's names" "^pod name a: I am web-a$" seen
  says "two pods listen on one port" "^pod name b: I am web-b$" seen
  says "a headless Service has an address per pod" "^headless 2$" seen
  says "a Service spreads its connections" "^balanced \['I am web-a', 'I am web-b'\]$" seen
  says "a name that nobody has is not found" "^unknown name: .*not known" seen
  says "readiness probes make endpoints" "web-.*8080 +10\.244\.[0-9.]+,10\.244" k get endpointslices
  says "deleting what was applied" 'pod "asker" deleted' k delete -f tests/kubectl/manifests/network.yaml
else
  skip "volumes and the pod network" "the machine allows the host level only"
fi

# ── how pods live ─────────────────────────────────────────────────────────────────────────────
k apply -f tests/kubectl/manifests/life.yaml > /dev/null
state_of() { k get pod "$1" -o jsonpath='{.status.phase} {.status.reason} {.status.containerStatuses[*].state.terminated.reason} {.status.containerStatuses[*].restartCount}'; }
eventually "OnFailure starts again and ends well" "^Succeeded  Completed 1$" state_of again
says "the log of the instance before" "^first$" k logs again -p
eventually "a sidecar ends with its pod" "^Succeeded" state_of sidecar
eventually "a deadline is kept" "^Failed DeadlineExceeded" state_of deadline
eventually "a program that does not exist is told" 'exec: "no-such-program": executable file not found' k describe pod nofile
eventually "a missing key of a configMap is told" 'configmap "nope" not found' k describe pod nomap
eventually "a failing liveness probe starts a container again" "Running.* [1-9]" state_of lively
eventually "a polite pod is ready" "true" k get pod polite -o jsonpath='{.status.containerStatuses[0].ready}'
says "a pod may end within its grace" 'pod "polite" deleted' timeout 10 "$KUBECTL" --kubeconfig "$state/kubeconfig" delete pod polite
says "one that does not is killed after it" 'pod "stubborn" deleted' timeout 10 "$KUBECTL" --kubeconfig "$state/kubeconfig" delete pod stubborn
if [ "$(id -u)" = 0 ] && [ "$level" = "pod level" ] && [ -z "$(katmai logs --data-dir "$state" | grep 'limits cannot be written')" ]; then
  eventually "a memory limit is held" "OOMKilled" state_of eater
else
  skip "a memory limit is held" "control groups cannot be written"
fi

# ── exec and copies ───────────────────────────────────────────────────────────────────────────
says "exec reads what it is given" "^8388608$" bash -c 'head -c 8388608 /dev/zero | "$KUBECTL" --kubeconfig "$0" exec -i web -- wc -c' "$state/kubeconfig"
says "exec keeps the two streams apart" "^out$" bash -c '"$KUBECTL" --kubeconfig "$0" exec web -- sh -c "echo err >&2; echo out" 2> /dev/null' "$state/kubeconfig"
if command -v script > /dev/null; then
  says "exec -it gives a terminal" "/dev/pts/" \
    script -qec "$KUBECTL --kubeconfig $state/kubeconfig exec -it web -- tty" /dev/null
fi
says "cp there and back" "^same$" bash -c '
  k() { "$KUBECTL" --kubeconfig "$0" "$@"; }
  head -c 300000 /dev/urandom > "$1/there"
  k cp "$1/there" web:/dev/shm/katmai-copy-$$ && k cp web:/dev/shm/katmai-copy-$$ "$1/back" > /dev/null
  rm -f /dev/shm/katmai-copy-$$; cmp "$1/there" "$1/back" && echo same' "$state/kubeconfig" "$home"

# ── restarts of the plane, however it ends ────────────────────────────────────────────────────
k delete pods --all --now > /dev/null 2>&1
for how in KILL TERM; do
  k create -f tests/kubectl/manifests/restart.yaml > /dev/null
  k wait --for=condition=Ready pods --all --timeout=20s > /dev/null
  kill -"$how" "$plane"; wait "$plane" 2> /dev/null; plane=
  eventually "after SIG$how no process is left" "^0$" bash -c 'pgrep -u "$(id -u)" -fxc "sleep 620[123]"; true'
  up --image-map "$home/images.yaml" || exit 1
  ended() { k get pod "$1" -o jsonpath="{.status.containerStatuses[0].$2.terminated.reason} {.status.containerStatuses[0].$2.terminated.exitCode} {.status.containerStatuses[0].restartCount} {.status.phase}"; }
  eventually "after SIG$how Always runs again" "^NodeRestarted 137 1 Running$" ended always lastState
  eventually "after SIG$how OnFailure runs again" "^NodeRestarted 137 1 Running$" ended onfailure lastState
  eventually "after SIG$how Never has failed" "^NodeRestarted 137 0 Failed$" ended never state
  k delete pods --all --now > /dev/null 2>&1
done
