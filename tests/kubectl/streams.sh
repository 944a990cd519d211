# Logs, forwarded ports, exec in both protocols, and what a pod says to the API. Sourced by
# tests/kubectl/run.

needs processes || { leave_out; return 0; }

up || exit 1
level=$(grep -o 'pod level\|host level' "$home/up.out")
if [ "$level" = "pod level" ]; then

k apply -f tests/kubectl/manifests/streams.yaml > /dev/null
k wait --for=condition=Ready pod/echo --timeout=20s > /dev/null

# ── logs ──────────────────────────────────────────────────────────────────────────────────────
say_wait() { for _ in $(seq 100); do k logs talk -c one 2> /dev/null | grep -q "$1" && return; sleep 0.1; done; }
say_wait 'line 3'
says "logs -f goes on until the container ends" "^late$" k logs talk -c one -f
say_wait again
says "the container that runs now" "^again$" k logs talk -c one
says "the one before it" "^line 1$" k logs talk -c one --previous
says "only the last lines" "^2$" bash -c '"$KUBECTL" --kubeconfig "$0" logs talk -c one -p --tail=2 | wc -l' "$state/kubeconfig"
says "no line at all" "^0$" bash -c '"$KUBECTL" --kubeconfig "$0" logs talk -c one -p --tail=0 | wc -l' "$state/kubeconfig"
says "all lines of the last hour" "^4$" bash -c '"$KUBECTL" --kubeconfig "$0" logs talk -c one -p --since=1h | wc -l' "$state/kubeconfig"
sleep 2
says "no line of the last second" "^0$" bash -c '"$KUBECTL" --kubeconfig "$0" logs talk -c one -p --since=1s | wc -l' "$state/kubeconfig"
says "lines since a time" "^late$" k logs talk -c one -p --since-time=2020-01-01T00:00:00Z
says "with their times" "^20[0-9-]+T[0-9:]+\.[0-9]{9}Z line 1$" k logs talk -c one -p --timestamps
says "only so many bytes" "^9$" bash -c '"$KUBECTL" --kubeconfig "$0" logs talk -c one -p --limit-bytes=9 | wc -c' "$state/kubeconfig"
says "all containers with their names" "^\[pod/talk/first\] from first" k logs talk --all-containers --prefix
says "pods by their labels" "^two$" k logs -l app=talk --all-containers
says "an init container" "^from first$" k logs talk -c first
expect "no container before the first" 1 'previous terminated container "two" in pod "talk" not found' k logs talk -c two -p
expect "a container that the pod has not" 1 "container none is not valid for pod talk" k logs talk -c none
raw() { k get --raw "/api/v1/namespaces/default/pods/talk/log?$1"; }
expect "a negative tail" 1 'PodLogOptions "talk" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0' raw "container=one&tailLines=-1"
expect "two beginnings" 1 'at most one of `sinceTime` or `sinceSeconds` may be specified' raw "container=one&sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z"
expect "which of several containers" 1 "a container name must be specified for pod talk, choose one of: \[first one two\]" raw ""

# ── forwarded ports ───────────────────────────────────────────────────────────────────────────
# forward WHAT PORT BYTES CONNECTIONS: what the other side says first, for each connection.
forward() {
  local out=$home/forward.out pid port
  # What an earlier one said is not taken for this one's.
  : > "$out"
  timeout 30 "$KUBECTL" --kubeconfig "$state/kubeconfig" port-forward "$1" ":$2" > "$out" 2>&1 &
  pid=$!
  for _ in $(seq 500); do grep -q '127.0.0.1:[0-9]* ->' "$out" && break; sleep 0.05; done
  port=$(grep -o '127.0.0.1:[0-9]*' "$out" | head -1 | cut -d: -f2)
  python3 - "$port" "$3" "$4" <<'P'
import os, socket, sys, threading
port, size, count = map(int, sys.argv[1:])
def one():
    s = socket.create_connection(('127.0.0.1', port), 25); data = os.urandom(size); got = b''
    threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
    while d := s.recv(65536):
        got += d
    os.write(1, f'{got[:5].decode()} {got[6:] == data}\n'.encode())  # one piece: threads share the line
threads = [threading.Thread(target=one) for _ in range(count)]
[t.start() for t in threads]; [t.join() for t in threads]
P
  sleep 0.2; kill "$pid" 2> /dev/null; wait "$pid" 2> /dev/null; cat "$out"
}
says "a port of a pod, forwarded both ways" "^outer True$" forward pod/echo 8080 300000 1
says "several connections at once" "^outer True;outer True;outer True;outer True;$" bash -c "$(declare -f forward); home=$home state=$state; forward pod/echo 8080 100000 4 | grep True | tr '\n' ';'"
says "a port that listens for the pod only" "^inner True$" forward pod/echo 8081 1000 1
says "a port of a Service" "^outer True$" forward svc/front 80 1000 1
says "a port where nobody listens" "error forwarding port 99 to pod echo, uid .*: dial tcp 127.0.0.1:99: connect: connection refused" forward pod/echo 99 1 1

# ── exec, in the protocol before websockets ───────────────────────────────────────────────────
spdy() { KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false k "$@"; }
says "exec without websockets" "^out$" spdy exec echo -- echo out
expect "its exit code" 5 "code 5" spdy exec echo -- sh -c 'exit 5'
for websockets in true false; do
  says "what is read and printed at once does not stand still (websockets $websockets)" "^same$" bash -c '
    export KUBECTL_REMOTE_COMMAND_WEBSOCKETS=$1; cd "$2"
    head -c 3000000 /dev/urandom > sent
    timeout 30 "$KUBECTL" --kubeconfig "$0" exec -i echo -- cat < sent | cmp - sent && echo same' "$state/kubeconfig" "$websockets" "$home"
done

# ── what a pod says to the API ────────────────────────────────────────────────────────────────
k wait --for=jsonpath='{.status.phase}'=Succeeded pod/caller --timeout=20s > /dev/null
seen() { k logs caller; }
says "a pod has the token of its account" "^namespace default$" seen
says "it finds the API by address" "^by address 1$" seen
says "it finds the API by name" "^by name 1$" seen
says "it is who its account is" '^who secrets is forbidden: User "system:serviceaccount:default:default" cannot list resource "secrets" in API group "" in the namespace "default"$' seen
says "the volume is upstream's" "^kube-api-access-[a-z0-9]{5} 3607 kube-root-ca.crt metadata.namespace$" k get pod caller -o \
  jsonpath='{.spec.volumes[0].name} {.spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds} {.spec.volumes[0].projected.sources[1].configMap.name} {.spec.volumes[0].projected.sources[2].downwardAPI.items[0].fieldRef.fieldPath}'

else
  skip "logs, ports, exec and the API as pods see it" "the machine allows the host level only"
fi

# ── signs of life ─────────────────────────────────────────────────────────────────────────────
eventually "a node renews its lease" "^node-1 40$" k get lease -n kube-node-lease node-1 -o jsonpath='{.spec.holderIdentity} {.spec.leaseDurationSeconds}'
eventually "describe tells of it" "HolderIdentity: +node-1" k describe node node-1
