# VolumeSnapshots: what was in a volume is read back from another one.

needs processes || { leave_out; return 0; }

up || exit 1

make_() { # make_ MANIFEST: kubectl create with the manifest on its input
  printf -- '---\n%s' "$1" | k create -f -
}
snapshot_of() { # snapshot_of NAME CLAIM
  make_ "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: $1}, spec: {source: {persistentVolumeClaimName: $2}}}"
}
claim_from() { # claim_from NAME API-GROUP KIND SOURCE SIZE
  make_ "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: $1}, spec: {accessModes: [ReadWriteOnce], dataSource: {apiGroup: $2, kind: $3, name: $4}, resources: {requests: {storage: $5}}}}"
}
reader_of() { # reader_of NAME CLAIM: prints what is in it and ends
  make_ "{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {restartPolicy: Never, volumes: [{name: disk, persistentVolumeClaim: {claimName: $2}}], containers: [{name: main, image: busybox, command: [sh, -c, 'cat /disk/deep/file /disk/link'], volumeMounts: [{name: disk, mountPath: /disk}]}]}}"
}
ready_() { k get volumesnapshot "$1" -o jsonpath='{.status.readyToUse} {.status.restoreSize} {.status.error.message}'; }

says "volumesnapshotclass standard is there" "standard +katmai.dev/directory +Delete" k get vsclass
says "a claim and its writer" "pod/writer created" k create -f tests/kubectl/manifests/snapshots.yaml
eventually "the writer has written" "^old$" k exec writer -- cat /disk/deep/file
says "a snapshot is asked for" "created" snapshot_of before first
eventually "a snapshot becomes ready" "^true 10Mi $" ready_ before
says "get vs shows its columns" "READYTOUSE +SOURCEPVC +SOURCESNAPSHOTCONTENT +RESTORESIZE +SNAPSHOTCLASS +SNAPSHOTCONTENT +CREATIONTIME +AGE" k get vs
says "describe tells how it went" "SnapshotReady" k describe volumesnapshot before
says "other data is written" "" k exec writer -- sh -c 'echo new > /disk/deep/file'
says "a claim from the snapshot" "created" claim_from restored snapshot.storage.k8s.io VolumeSnapshot before 10Mi
says "a reader of it" "created" reader_of reads-old restored
eventually "the old data is read back" "^old$" bash -c '"$KUBECTL" --kubeconfig "$0" logs reads-old | sort -u' "$state/kubeconfig"
says "the writer has the new data" "^new$" k exec writer -- cat /disk/deep/file
says "a clone of the claim" "created" claim_from clone '""' PersistentVolumeClaim first 10Mi
says "a reader of the clone" "created" reader_of reads-new clone
eventually "a clone has the new data" "^new$" bash -c '"$KUBECTL" --kubeconfig "$0" logs reads-new | sort -u' "$state/kubeconfig"
says "a claim that is too small" "created" claim_from small snapshot.storage.k8s.io VolumeSnapshot before 1Mi
says "its reader" "created" reader_of reads-small small
eventually "a claim that is too small is told" "requested volume size 1048576 is less than the size 10485760" k describe pvc small
says "the small one goes" "deleted" k delete pod/reads-small pvc/small --now
says "a snapshot of nothing" "created" snapshot_of nothing nowhere
eventually "a snapshot of nothing says why" "cannot get claim from snapshot" ready_ nothing
expect "a source may not change" 1 "is immutable" k patch volumesnapshot before --type=merge -p '{"spec":{"source":{"persistentVolumeClaimName":"other"}}}'
says "a deleted snapshot takes its content along" "deleted" k delete volumesnapshot before nothing --timeout=20s
eventually "no content is left" "No resources found" k get volumesnapshotcontents
says "on disk neither" "^$" ls "$state/data/snapshots"
says "what was restored stays" "Bound" k get pvc restored
says "volumes that are given back go from the disk" "deleted" k delete pods,pvc --all --now --timeout=30s
eventually "no volume is left" "No resources found" k get pv
eventually "nor its directory" "^$" ls "$state/data/volumes"
