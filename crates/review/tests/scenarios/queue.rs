use super::*;

const WORLD: &str = "
    {kind: Queue, metadata: {name: root}, spec: {weight: 1}, status: {state: Open}}
    {kind: Queue, metadata: {name: default}, spec: {weight: 1}, status: {state: Open}}
    {kind: Queue, metadata: {name: lab}, spec: {capability: {cpu: 8}, deserved: {cpu: 4, nvidia.com/gpu: 2}, guarantee: {resource: {cpu: 2}}}, status: {state: Open}}
    {kind: Queue, metadata: {name: lab-a}, spec: {parent: lab, capability: {cpu: 6}, deserved: {cpu: 3}, guarantee: {resource: {cpu: 1}}}, status: {state: Open}}
    {kind: Queue, metadata: {name: busy}, spec: {}, status: {state: Open, allocated: {pods: 3}}}
    {kind: Queue, metadata: {name: d2}, spec: {parent: lab-a}}
    {kind: Queue, metadata: {name: d3}, spec: {parent: d2}}
    {kind: Queue, metadata: {name: d4}, spec: {parent: d3}}
    {kind: Queue, metadata: {name: sci, annotations: {volcano.sh/hierarchy: root/sci/dev, volcano.sh/hierarchy-weights: 1/2/3}}, spec: {}}
";

fn verdict(text: &str) -> String {
    lines(text).replace(
        "DENIED",
        "400 admission webhook \"validatequeue.volcano.sh\" denied the request:",
    )
}

fn create(queue: &str, expected: &str) {
    let asked = ask(
        &world(WORLD),
        Operation::Create,
        Kind::Queue,
        &Value::Null,
        &yaml(queue),
    );
    assert_eq!(asked, verdict(expected), "{queue}");
}

fn update(old: &str, new: &str, expected: &str) {
    let asked = ask(
        &world(WORLD),
        Operation::Update,
        Kind::Queue,
        &yaml(old),
        &yaml(new),
    );
    assert_eq!(asked, verdict(expected), "{new}");
}

fn delete(name: &str, expected: &str) {
    let old = yaml(&format!("{{metadata: {{name: {name}}}}}"));
    let asked = ask(
        &world(WORLD),
        Operation::Delete,
        Kind::Queue,
        &old,
        &Value::Null,
    );
    assert_eq!(asked, verdict(expected), "{name}");
}

#[test]
fn defaults_are_filled_in() {
    create(
        "{metadata: {name: q}}",
        "allowed\nspec={\"reclaimable\":true,\"weight\":1}",
    );
    create(
        "{metadata: {name: q}, spec: {weight: 3, reclaimable: false}}",
        "allowed",
    );
    create(
        "{metadata: {name: q, annotations: {volcano.sh/hierarchy: a/b, volcano.sh/hierarchy-weights: 2/3}}, spec: {weight: 3, reclaimable: false}}",
        "allowed
        metadata.annotations.volcano.sh/hierarchy=\"root/a/b\"
        metadata.annotations.volcano.sh/hierarchy-weights=\"1/2/3\"",
    );
}

#[test]
fn a_changed_queue_keeps_the_defaults_that_it_had() {
    update(
        "{metadata: {name: q}, spec: {weight: 1, reclaimable: true, capability: {cpu: 1}}}",
        "{metadata: {name: q}, spec: {capability: {cpu: 1}}}",
        "allowed\nspec.reclaimable=true\nspec.weight=1",
    );
    let placed = |path: &str, weights: &str| {
        format!(
            "{{metadata: {{name: q, annotations: {{volcano.sh/hierarchy: {path}, volcano.sh/hierarchy-weights: '{weights}'}}}}, spec: {{weight: 1}}}}"
        )
    };
    update(
        &placed("root/a", "1/2"),
        &placed("a", "2"),
        "allowed
        metadata.annotations.volcano.sh/hierarchy=\"root/a\"
        metadata.annotations.volcano.sh/hierarchy-weights=\"1/2\"",
    );
}

#[test]
fn amounts_are_in_order_and_never_negative() {
    create(
        "{metadata: {name: q}, spec: {capability: {cpu: -1}}}",
        "DENIED requestBody.spec.capability.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
    );
    create(
        "{metadata: {name: q}, spec: {capability: {nvidia.com/gpu: 500m}}}",
        "DENIED requestBody.spec.capability.nvidia.com/gpu: Invalid value: \"500m\": must be an integer",
    );
    create(
        "{metadata: {name: q}, spec: {guarantee: {resource: {cpu: 1}}}}",
        "DENIED requestBody.spec.deserved.cpu: Invalid value: \"<nil>\": deserved[cpu] must be >= guarantee[cpu]=1",
    );
    create(
        "{metadata: {name: q}, spec: {guarantee: {resource: {cpu: 2}}, deserved: {cpu: 1500m}, capability: {cpu: 1}}}",
        "DENIED [requestBody.spec.deserved.cpu: Invalid value: \"1500m\": deserved[cpu]=1500m must be >= guarantee[cpu]=2, requestBody.spec.deserved.cpu: Invalid value: \"1500m\": deserved[cpu]=1500m must be <= capability[cpu]=1]",
    );
    update(
        "{metadata: {name: q}, spec: {}}",
        "{metadata: {name: q}, spec: {}, status: {state: Closing}}",
        "DENIED requestBody.spec.state: Invalid value: \"Closing\": queue state must be in [Open Closed]",
    );
}

#[test]
fn hierarchy_annotations_agree() {
    let with = |path: &str, weights: &str| {
        format!(
            "{{metadata: {{name: q, annotations: {{volcano.sh/hierarchy: {path}, volcano.sh/hierarchy-weights: '{weights}'}}}}, spec: {{}}}}"
        )
    };
    create(
        &with("root/a", "1"),
        "DENIED requestBody.metadata.annotations: Invalid value: \"root/a\": volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights",
    );
    create(
        &with("root/a", "1/x"),
        "DENIED requestBody.metadata.annotations: Invalid value: \"1/x\": x in the 1/x is invalid number: strconv.ParseFloat: parsing \"x\": invalid syntax",
    );
    create(
        &with("root/a", "1/0"),
        "DENIED requestBody.metadata.annotations: Invalid value: \"1/0\": 0 in the 1/0 must be larger than 0",
    );
    create(
        &with("root/sci", "1/2"),
        "DENIED requestBody.metadata.annotations: Invalid value: \"root/sci\": root/sci is not allowed to be in the sub path of root/sci/dev of queue sci",
    );
}

#[test]
fn a_parent_is_another_queue_that_holds_no_pods_itself() {
    let below = |parent: &str| format!("{{metadata: {{name: q}}, spec: {{parent: {parent}}}}}");
    create(&below("q"), "DENIED queue q cannot use itself as parent");
    create(
        &below("lost"),
        "DENIED failed to get parent queue lost of queue q: queue.scheduling.volcano.sh \"lost\" not found",
    );
    create(
        &below("busy"),
        "DENIED queue busy cannot be the parent queue of queue q because it has allocated Pods: 3",
    );
    create(
        &below("d4"),
        "DENIED queue q exceeds the maximum allowed depth of 5",
    );
}

#[test]
fn amounts_fit_the_queues_above_beside_and_below() {
    create(
        "{metadata: {name: q}, spec: {parent: lab, capability: {cpu: 9}}}",
        "DENIED queue q capability[cpu]=9 exceeds its ancestor's capability=8",
    );
    create(
        "{metadata: {name: q}, spec: {parent: lab, deserved: {cpu: 2}}}",
        "DENIED parent queue lab validation failed: sum of children's deserved (cpu 5000.00, memory 0.00) exceeds parent's deserved limit (cpu 4000.00, memory 0.00, nvidia.com/gpu 2000.00)",
    );
    create(
        "{metadata: {name: q}, spec: {parent: lab, deserved: {cpu: 1, memory: 1Gi}}}",
        "DENIED parent queue lab validation failed: sum of children's deserved (cpu 4000.00, memory 1073741824.00) exceeds parent's deserved limit (cpu 4000.00, memory 0.00, nvidia.com/gpu 2000.00)",
    );
    let lab = "{metadata: {name: lab}, spec: {capability: {cpu: 8}, deserved: {cpu: 4}}}";
    update(
        lab,
        "{metadata: {name: lab}, spec: {capability: {cpu: 5}, deserved: {cpu: 4}}}",
        "DENIED queue lab capability[cpu]=5 is smaller than its descendants' max capability=6",
    );
    update(
        lab,
        "{metadata: {name: lab}, spec: {capability: {cpu: 8}, deserved: {cpu: 2}}}",
        "DENIED queue lab validation failed: sum of children's guarantee (cpu 1000.00, memory 0.00) exceeds parent's guarantee limit (cpu 0.00, memory 0.00)",
    );
    update(lab, lab, "allowed");
}

#[test]
fn the_root_queue_keeps_its_amounts() {
    update(
        "{metadata: {name: root}, spec: {}}",
        "{metadata: {name: root}, spec: {capability: {cpu: 1}}}",
        "DENIED root queue's resource attributes (capability, deserved, guarantee) cannot be modified",
    );
    update(
        "{metadata: {name: root}, spec: {}}",
        "{metadata: {name: root}, spec: {capability: {}, weight: 4}}",
        "allowed",
    );
}

#[test]
fn some_queues_stay() {
    delete("default", "DENIED `default` queue can not be deleted");
    delete("root", "DENIED `root` queue can not be deleted");
    delete(
        "lab",
        "DENIED queue lab can not be deleted because it has 1 child queues: lab-a",
    );
    delete(
        "lost",
        "DENIED queue.scheduling.volcano.sh \"lost\" not found",
    );
    delete("busy", "allowed");
}

#[test]
fn very_many_wrong_amounts_are_told_in_bounded_words() {
    let amounts: serde_json::Map<String, Value> = (0..50_000)
        .map(|index| (format!("a.dev/r{index}"), (-1).into()))
        .collect();
    let mut queue = yaml("{metadata: {name: q}, spec: {}}");
    queue["spec"]["capability"] = amounts.into();
    let world = world(WORLD);
    let answer = ask(&world, Operation::Create, Kind::Queue, &Value::Null, &queue);
    assert!(answer.contains("[requestBody.spec.capability.a.dev/r0: Invalid value: \"-1\": must be greater than or equal to 0, "));
    assert!(answer.len() < review::MESSAGE_BYTES_MAX + 200);
}
