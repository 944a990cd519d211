# The two servers that sentences are asked of. Sourced by tests/kubectl/run.

real='' met='' space='' imitation='' callers_home=$HOME

# up [FLAG…]: a plane of the shape that the flags say; of the real server a namespace of its own.
up() {
  if [ $side = theirs ] && [ -n "$met" ]; then up_real; return; fi
  : > "$home/up.out"
  "$KATMAI" up --data-dir "$state" "$@" > "$home/up.out" 2> "$home/up.err" &
  plane=$!
  for _ in $(seq 200); do
    grep -q KUBECONFIG= "$home/up.out" && return 0
    kill -0 "$plane" 2> /dev/null || break
    sleep 0.05
  done
  echo "the plane did not come up:"; cat "$home/up.out" "$home/up.err"
  return 1
}

down() {
  # Pods of a part that is done are not in the next one's way.
  [ -n "$space" ] && k delete namespace "$space" --wait=false > /dev/null
  space=
  [ -z "$plane" ] && return
  "$KATMAI" down --data-dir "$state" > /dev/null 2>&1 || kill -9 "$plane" 2> /dev/null
  wait "$plane" 2> /dev/null
  plane=
}

# bare: the objects of a list as somebody would write them.
bare() {
  python3 -c '
import json, sys
listed = json.load(sys.stdin)
for item in listed["items"]:
    item.pop("status", None)
    kept = {key: item["metadata"][key] for key in ("name", "labels", "annotations") if key in item["metadata"]}
    item["metadata"] = kept
json.dump(listed, sys.stdout)'
}

# furnish: the real server gets what a plane has from the start and a bare server has not.
furnish() {
  local kinds
  state=$home/furniture
  up --ephemeral --port 0 || return 1
  for kinds in crd storageclasses,queues; do
    k get "$kinds" -o json | bare > "$home/furniture.json" || return 1
    timeout 60 "$KUBECTL" --kubeconfig "$home/real.kubeconfig" apply --server-side --force-conflicts -f "$home/furniture.json" || return 1
    timeout 60 "$KUBECTL" --kubeconfig "$home/real.kubeconfig" wait --for=condition=Established crd --all --timeout=30s || return 1
  done
  down
}

# meet_real: the real server with its controllers, and what a plane has from the start: Volcano's
# kinds and first queues, a storage class, nodes.
meet_real() {
  local given=${REALKUBE_KUBECONFIG:-}
  if [ -z "$given" ]; then
    real=$home/real
    cargo xtask realkube up --controllers --dir "$real" > "$home/real.out" 2>&1 || { cat "$home/real.out"; return 1; }
    given=$real/kubeconfig
  fi
  # In one file, whatever the given one leads to.
  "$KUBECTL" --kubeconfig "$given" config view --raw --flatten --minify > "$home/real.kubeconfig" || return 1
  furnish > "$home/furniture.out" 2>&1 || { cat "$home/furniture.out"; return 1; }
  python3 tests/kubectl/imitation.py "$KUBECTL" "$home/real.kubeconfig" node-1 sim-node-0 sim-node-1 > "$home/imitation.out" 2>&1 &
  imitation=$!
  timeout 30 "$KUBECTL" --kubeconfig "$home/real.kubeconfig" wait --for=create node/sim-node-1 --timeout=20s > /dev/null && met=yes && return 0
  cat "$home/imitation.out"; return 1
}

up_real() {
  space=kubectl-$part-$RANDOM
  mkdir -p "$state"
  cp "$home/real.kubeconfig" "$state/kubeconfig"
  {
    k create namespace "$space" &&
    k config set-context --current --namespace="$space" &&
    k wait --for=create serviceaccount/default --timeout=20s
  } > "$home/up.out" 2>&1 && return 0
  cat "$home/up.out"; return 1
}

leave_real() {
  [ -n "$imitation" ] && kill "$imitation" 2> /dev/null && wait "$imitation" 2> /dev/null
  [ -n "$real" ] && HOME=$callers_home cargo xtask realkube down --dir "$real" > /dev/null
}
