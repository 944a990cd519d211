# `katmai run` and the plane's own verbs. Sourced by tests/kubectl/run.

needs commands || { leave_out; return 0; }

manifests=tests/kubectl/manifests
# A flag that shapes a plane asks for one of its own.
alone() { katmai run --port 0 "$@"; }

# ── verdicts ──────────────────────────────────────────────────────────────────────────────────
expect "a job that is aborted gives 1" 1 "vcjob/fails +Aborted" alone $manifests/fails.yaml
expect "why a task failed is said" 1 "a-0: Failed \(exit code 3\)" alone $manifests/fails.yaml
expect "of several the worst verdict counts" 1 "job/ends +Complete" alone $manifests/ends.yaml $manifests/fails.yaml
says "of none to follow the verdict is 0" "dataset created" alone examples/late-claim-dataset.yaml
expect "a wait that is too long gives 3" 3 "waits for .*dataset|waits: .*dataset" alone --timeout 1s examples/late-claim.yaml
says "a manifest may come from standard input" "job/ends +Complete" bash -c 'timeout 60 "$0" run --port 0 - < "$1"' "$KATMAI" $manifests/ends.yaml
says "a worker that fails once is restarted by policy" "RestartTask because of PodFailed of pod flaky-worker-1" alone examples/flaky-worker.yaml
says "its failure is shown" "worker-1: Failed \(exit code 7\)" alone examples/flaky-worker.yaml

# ── bad manifests ─────────────────────────────────────────────────────────────────────────────
# wrong SENTENCE PATTERN TEXT
wrong() {
  printf '%b' "$3" > "$home/wrong.yaml"
  expect "$1" 2 "$2" alone "$home/wrong.yaml"
}
job='apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec:\n'
wrong "YAML that does not end" "wrong.yaml:1:4: .*unclosed" 'a: [\n'
wrong "an unknown kind" 'wrong.yaml:1:1: .*no matches for kind "Foo"' 'kind: Foo\napiVersion: foo/v1\nmetadata: {name: a}\n'
wrong "a field that is given twice" "wrong.yaml:6:3: spec.minAvailable: this field is given twice" "$job  minAvailable: 1\n  minAvailable: 2\n"
wrong "a field of the wrong type" "wrong.yaml:5:[0-9]+: spec.minAvailable: .*integer" "$job  minAvailable: many\n"
wrong "two mistakes are told at once" "wrong.yaml:[67]:[0-9]+: spec.containers\[1\].name: Duplicate value" \
  'apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - {name: a}\n  - {name: a, image: b}\n'
wrong "an empty manifest" "no object is in it" ''
wrong "a mistake that is seen only on a plane takes back what was made before it" "job.batch.volcano.sh/a deleted" \
  "$job  tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: c, image: b}]}}}]\n---\n$job  queue: nowhere\n  tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: c, image: b}]}}}]\n"
expect "a file that does not exist" 2 "nowhere.yaml: cannot read" alone nowhere.yaml

# ── formats ───────────────────────────────────────────────────────────────────────────────────
says "each line for machines is an object" "^all are objects$" bash -c '
  timeout 60 "$0" run -o json --port 0 examples/training-gang.yaml | while read -r line; do
    case $line in "{\""*"\"}" | "{\""*"]}" | "{\""*[0-9]"}") ;; *) echo "not an object: $line" ;; esac
  done; echo all are objects' "$KATMAI"
if command -v python3 > /dev/null; then
  says "each line for machines can be parsed" "summary 0" bash -c 'timeout 60 "$0" run -o json --port 0 examples/training-gang.yaml |
    python3 -c "import json, sys; last = [json.loads(line) for line in sys.stdin][-1]; print(last[\"event\"], last[\"exitCode\"])"' "$KATMAI"
fi
says "a pipe gets no escapes" "^none$" bash -c 'timeout 60 "$0" run --port 0 "$1" | grep -c "$(printf "\\033")" | sed "s/^0$/none/"' "$KATMAI" $manifests/ends.yaml
if command -v script > /dev/null; then
  # screen FILE ARGUMENT…: what a terminal is shown.
  screen() {
    local file=$1; shift
    TERM=xterm timeout 60 script -qec "$KATMAI run --port 0 $*" /dev/null < /dev/null | tr '\r' '\n' > "$file"
  }
  screen "$home/moves" examples/training-gang.yaml
  screen "$home/waits" --node-cpu 450m --timeout 1s examples/training-gang.yaml
  export NO_COLOR=1
  screen "$home/plain" examples/training-gang.yaml
  unset NO_COLOR
  says "a terminal shows what moves" "vcjob/training  Running .*[0-9] running" cat "$home/moves"
  says "a terminal shows why it waits" "4 of 5 tasks fit: worker-3 needs 100m cpu" cat "$home/waits"
  says "names of tasks are coloured on a terminal" "$(printf '\033')\[3[0-9]mmaster-0" cat "$home/moves"
  says "NO_COLOR is kept" "^0$" bash -c 'grep -c "$(printf "\033")\[3[0-9]m" "$0"; true' "$home/plain"
fi

# ── on a plane that is up ─────────────────────────────────────────────────────────────────────
up || exit 1
here() { katmai "$@" --data-dir "$state"; }
says "run uses the plane that is up" "vcjob/flaky +Completed" here run examples/flaky-worker.yaml
says "and leaves everything there" "Completed" k get vcjob flaky -o jsonpath='{.status.state.phase}'
says "the restart was counted" "^1$" k get vcjob flaky -o jsonpath='{.status.retryCount}'
says "the same again is told as ended before" "vcjob/flaky +Completed +before this run" here run examples/flaky-worker.yaml
says "run --rm" "job/ends +Complete" here run --rm $manifests/ends.yaml
eventually "deletes what it created" "No resources found" k get jobs
says "status as JSON" '"up":true' here status -o json
says "the plane keeps a log" "up at https://127" here logs
says "logs as JSON" '"line":"I succeed"' here logs flaky -o json
expect "logs of nobody" 1 'no vcjob, job or pod named "nobody"' here logs nobody
taken=$(grep -o '[0-9]*$' "$state/address")
expect "a port that is taken is told" 1 "cannot listen on 127.0.0.1:$taken: Address already in use" \
  katmai up --ephemeral --data-dir "$home/other" --port "$taken"
says "a plane with a shape leaves the one that is up alone" "job/ends +Complete" alone $manifests/ends.yaml
expect "nothing of it is here" 1 "NotFound" k get job ends
says "late claim: the job waits" "late created" k create -f examples/late-claim.yaml
says "late claim: it is followed to its end, once the claim is there" "vcjob/late +Completed" bash -c '
  (timeout 2 tail -f /dev/null; "$KUBECTL" --kubeconfig "$1/kubeconfig" apply -f examples/late-claim-dataset.yaml > /dev/null) &
  timeout 60 "$0" run --data-dir "$1" --timeout 30s examples/late-claim.yaml' "$KATMAI" "$state"
says "down" "the plane is down" here down
says "down of what is down" "no plane is up" here down
expect "get-kubeconfig of what is down" 1 "start one with: katmai up" here get-kubeconfig

# ── other verbs ───────────────────────────────────────────────────────────────────────────────
for verb in completion down get-kubeconfig logs run status up vcctl version; do
  says "help of $verb" "Usage: " katmai $verb --help
done
for shell in bash zsh fish; do
  says "completion for $shell" "get-kubeconfig" katmai completion $shell
done
says "the bash completion is sound" "^$" bash -c 'bash -n <("$0" completion bash)' "$KATMAI"
says "version" "^katmai [0-9]+\.[0-9]+" katmai version
expect "a flag that is wrong is told with its name" 2 "450x.*--node-cpu" katmai up --node-cpu 450x
expect "an unknown verb" 2 "unrecognized subcommand" katmai frobnicate
expect "a directory that cannot be made" 1 "cannot make the state directory /proc/" katmai up --data-dir /proc/katmai
says "run needs no directory of its own" "job/ends +Complete" env HOME=/proc/none XDG_STATE_HOME= "$KATMAI" run $manifests/ends.yaml

# ── levels, and users without rights ──────────────────────────────────────────────────────────
says "the host level runs what needs no network of its own" "job/ends +Complete" alone --network host $manifests/ends.yaml
if [ "$(id -u)" = 0 ] && id nobody > /dev/null 2>&1; then
  mkdir -p "$home/nobody"
  cp "$KATMAI" "$home/nobody/katmai"; cp -r examples "$home/nobody/"
  chmod 711 "$home"; chown -R nobody "$home/nobody"
  if su nobody -s /bin/sh -c 'unshare -Urn true' 2> /dev/null; then
    says "a user without rights runs the example with the pod network" "answer: there are 17984 primes" \
      su nobody -s /bin/sh -c "cd '$home/nobody' && HOME='$home/nobody' XDG_STATE_HOME= timeout 60 ./katmai run --network pod examples/training-gang.yaml"
  else
    skip "a user without rights runs the example with the pod network" "user namespaces are not allowed"
  fi
fi
