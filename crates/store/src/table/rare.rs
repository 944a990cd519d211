//! Cells of kinds that are seldom looked at: policies, scaling, requests for certificates, ingresses,
//! storage drivers, priorities and fairness. As the real server's tables say them; the differential
//! suite compares (`tests/differential/scripts/rare.txt`).

use serde_json::Value;

use super::cells::{containers, labels, list, number, or_none, selector, span, text_or};
use super::core::three_of;

/// The cell of one column; `None` for one that is told elsewhere.
pub(super) fn cell(resource: &str, column: &str, object: &Value) -> Option<Value> {
    let spec = &object["spec"];
    Some(match resource {
        "mutatingadmissionpolicies" | "validatingadmissionpolicies" => policy(spec, column),
        "mutatingadmissionpolicybindings" | "validatingadmissionpolicybindings" => match column {
            "PolicyName" => spec["policyName"].clone(),
            _ => parameters(&spec["paramRef"]).into(),
        },
        "certificatesigningrequests" => certificate(object, column),
        "componentstatuses" => component(object, column),
        "controllerrevisions" => controller(object).into(),
        "csidrivers" => driver(spec, column),
        "endpoints" => addresses(object).into(),
        "flowschemas" => flow(object, column),
        "horizontalpodautoscalers" => scaling(object, column),
        "ingressclasses" => class_parameters(&spec["parameters"]).into(),
        "ingresses" => ingress(object, column),
        "ipaddresses" => parent(&spec["parentRef"]).into(),
        "podgroups" => group(object, column).into(),
        "podtemplates" => template(&object["template"], column),
        "prioritylevelconfigurations" => priority_level(spec, column),
        "servicecidrs" => joined(&spec["cidrs"]).into(),
        "volumeattachments" => attachment(object, column),
        "volumeattributesclasses" => object["driverName"].clone(),
        _ => return None,
    })
}

/// Texts of a list with commas between them.
fn joined(value: &Value) -> String {
    let texts: Vec<&str> = list(value).iter().map(|it| text_or(it, "")).collect();
    texts.join(",")
}

/// A number or a text as it stands, `otherwise` where there is none.
fn shown(value: &Value, otherwise: &str) -> Value {
    match value {
        Value::Null => otherwise.into(),
        Value::Number(number) => number.to_string().into(),
        other => other.clone(),
    }
}

/// The status of the condition of a type.
fn condition<'a>(conditions: &'a Value, kind: &str) -> Option<&'a Value> {
    list(conditions).iter().find(|it| it["type"] == kind)
}

fn policy(spec: &Value, column: &str) -> Value {
    match (column, &spec["paramKind"]) {
        ("Mutations", _) => list(&spec["mutations"]).len().into(),
        ("Validations", _) => list(&spec["validations"]).len().into(),
        (_, Value::Null) => "<unset>".into(),
        (_, kind) => {
            let (version, kind) = (text_or(&kind["apiVersion"], ""), text_or(&kind["kind"], ""));
            format!("{version}/{kind}").into()
        }
    }
}

/// Whose parameters a binding names. Where they are is not known here, if it does not say so.
fn parameters(reference: &Value) -> String {
    let name = text_or(&reference["name"], "");
    let namespace = text_or(&reference["namespace"], "*");
    match (name, &reference["selector"]) {
        ("", Value::Null) => "<unset>".to_owned(),
        ("", chosen) => selector(chosen),
        (name, _) => format!("{namespace}/{name}"),
    }
}

fn certificate(object: &Value, column: &str) -> Value {
    let spec = &object["spec"];
    match column {
        "SignerName" => text_or(&spec["signerName"], "<none>").into(),
        "Requestor" => text_or(&spec["username"], "").into(),
        "RequestedDuration" => match spec["expirationSeconds"].as_i64() {
            Some(seconds) => span(seconds.saturating_mul(1_000_000)).into(),
            None => "<none>".into(),
        },
        _ => certificate_state(&object["status"]).into(),
    }
}

fn certificate_state(status: &Value) -> String {
    let has = |kind: &str| condition(&status["conditions"], kind).is_some();
    let decided = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let is_issued = !text_or(&status["certificate"], "").is_empty();
    let more = [("Failed", has("Failed")), ("Issued", is_issued)];
    let more = more.iter().filter(|(_, is)| *is).map(|(word, _)| *word);
    std::iter::once(decided)
        .chain(more)
        .collect::<Vec<_>>()
        .join(",")
}

fn component(object: &Value, column: &str) -> Value {
    let healthy = condition(&object["conditions"], "Healthy");
    let field = |name: &str| healthy.map_or("", |it| text_or(&it[name], ""));
    match column {
        "Status" => match field("status") {
            "True" => "Healthy".into(),
            "False" => "Unhealthy".into(),
            _ => "Unknown".into(),
        },
        "Message" => field("message").into(),
        _ => field("error").into(),
    }
}

/// Who controls a revision: `kind.group/name`.
fn controller(object: &Value) -> String {
    let owners = list(&object["metadata"]["ownerReferences"]);
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return "<none>".to_owned();
    };
    let (version, name) = (
        text_or(&owner["apiVersion"], ""),
        text_or(&owner["name"], ""),
    );
    let kind = text_or(&owner["kind"], "").to_lowercase();
    match version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

fn driver(spec: &Value, column: &str) -> Value {
    match column {
        "AttachRequired" => (spec["attachRequired"] != false).into(),
        "PodInfoOnMount" => (spec["podInfoOnMount"] == true).into(),
        "StorageCapacity" => (spec["storageCapacity"] == true).into(),
        "RequiresRepublish" => (spec["requiresRepublish"] == true).into(),
        "Modes" => or_none(joined(&spec["volumeLifecycleModes"])).into(),
        _ => match list(&spec["tokenRequests"]) {
            [] => "<unset>".into(),
            requests => {
                let audiences: Vec<&str> = requests
                    .iter()
                    .map(|it| text_or(&it["audience"], ""))
                    .collect();
                audiences.join(",").into()
            }
        },
    }
}

/// The first three of `address:port`.
fn addresses(endpoints: &Value) -> String {
    let mut all = Vec::new();
    for subset in list(&endpoints["subsets"]) {
        let addresses = list(&subset["addresses"]).iter();
        let addresses = addresses.map(|it| text_or(&it["ip"], ""));
        match list(&subset["ports"]) {
            [] => all.extend(addresses.map(ToOwned::to_owned)),
            ports => {
                for port in ports.iter().map(|port| number(&port["port"])) {
                    let with_port = |ip: &str| match ip.contains(':') {
                        true => format!("[{ip}]:{port}"),
                        false => format!("{ip}:{port}"),
                    };
                    all.extend(addresses.clone().map(with_port));
                }
            }
        }
    }
    three_of(all, "<none>")
}

fn flow(object: &Value, column: &str) -> Value {
    let spec = &object["spec"];
    match column {
        "PriorityLevel" => text_or(&spec["priorityLevelConfiguration"]["name"], "<none>").into(),
        "MatchingPrecedence" => number(&spec["matchingPrecedence"]).into(),
        "DistinguisherMethod" => text_or(&spec["distinguisherMethod"]["type"], "<none>").into(),
        _ => condition(&object["status"]["conditions"], "Dangling")
            .map_or("?", |it| text_or(&it["status"], ""))
            .into(),
    }
}

fn priority_level(spec: &Value, column: &str) -> Value {
    let (limited, exempt) = (&spec["limited"], &spec["exempt"]);
    let queuing = &limited["limitResponse"]["queuing"];
    let value = match column {
        "Type" => &spec["type"],
        "NominalConcurrencyShares" if spec["type"] == "Exempt" => {
            &exempt["nominalConcurrencyShares"]
        }
        "NominalConcurrencyShares" => &limited["nominalConcurrencyShares"],
        "Queues" => &queuing["queues"],
        "HandSize" => &queuing["handSize"],
        _ => &queuing["queueLengthLimit"],
    };
    match value {
        Value::Null => "<none>".into(),
        value => value.clone(),
    }
}

fn class_parameters(parameters: &Value) -> String {
    let (kind, name) = (
        text_or(&parameters["kind"], ""),
        text_or(&parameters["name"], ""),
    );
    match (parameters, parameters["apiGroup"].as_str()) {
        (Value::Null, _) => "<none>".to_owned(),
        (_, Some(group)) => format!("{kind}.{group}/{name}"),
        (_, None) => format!("{kind}/{name}"),
    }
}

fn ingress(object: &Value, column: &str) -> Value {
    let spec = &object["spec"];
    match column {
        "Class" => text_or(&spec["ingressClassName"], "<none>").into(),
        "Hosts" => {
            let hosts = list(&spec["rules"]).iter();
            let hosts = hosts.map(|rule| text_or(&rule["host"], "").to_owned());
            three_of(hosts.filter(|host| !host.is_empty()).collect(), "*").into()
        }
        "Ports" => match list(&spec["tls"]) {
            [] => "80".into(),
            _ => "80, 443".into(),
        },
        _ => ingress_address(&object["status"]["loadBalancer"]["ingress"]).into(),
    }
}

fn ingress_address(points: &Value) -> String {
    let points = list(points).iter();
    let mut all: Vec<&str> = points
        .map(|point| text_or(&point["ip"], text_or(&point["hostname"], "")))
        .filter(|text| !text.is_empty())
        .collect();
    all.sort_unstable();
    all.dedup();
    all.join(",")
}

/// A native group of pods: how it is to be scheduled, and how far that is.
fn group(object: &Value, column: &str) -> String {
    if column == "Policy" {
        let policy = &object["spec"]["schedulingPolicy"];
        let known = [("gang", "Gang"), ("basic", "Basic")];
        let found = known.iter().find(|(field, _)| policy[field].is_object());
        return found.map_or("<none>", |(_, word)| word).to_owned();
    }
    let conditions = &object["status"]["conditions"];
    let disrupted = condition(conditions, "DisruptionTarget").filter(|it| it["status"] == "True");
    match (disrupted, condition(conditions, "PodGroupScheduled")) {
        (Some(why), _) => text_or(&why["reason"], "").to_owned(),
        (None, Some(is)) if is["status"] == "True" => "Scheduled".to_owned(),
        (None, Some(_)) => "Unschedulable".to_owned(),
        (None, None) => "Pending".to_owned(),
    }
}

/// `resource.group/namespace/name` of what has an address.
fn parent(reference: &Value) -> String {
    let fields = ["group", "resource", "namespace", "name"];
    let fields = fields.map(|field| text_or(&reference[field], ""));
    let fields = fields.into_iter().filter(|text| !text.is_empty());
    fields.collect::<Vec<_>>().join("/")
}

fn template(template: &Value, column: &str) -> Value {
    let [names, images] = containers(&template["spec"]);
    match column {
        "Containers" => names,
        "Images" => images,
        _ => labels(&template["metadata"]["labels"]).into(),
    }
}

fn attachment(object: &Value, column: &str) -> Value {
    let spec = &object["spec"];
    match column {
        "Attacher" => spec["attacher"].clone(),
        "PV" => text_or(&spec["source"]["persistentVolumeName"], "").into(),
        "Node" => spec["nodeName"].clone(),
        _ => (object["status"]["attached"] == true).into(),
    }
}

fn scaling(object: &Value, column: &str) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    match column {
        "Reference" => {
            let target = &spec["scaleTargetRef"];
            let (kind, name) = (text_or(&target["kind"], ""), text_or(&target["name"], ""));
            format!("{kind}/{name}").into()
        }
        "MinPods" => shown(&spec["minReplicas"], "<unset>"),
        "MaxPods" => number(&spec["maxReplicas"]).into(),
        "Replicas" => number(&status["currentReplicas"]).into(),
        _ => match spec["targetCPUUtilizationPercentage"].as_i64() {
            Some(wanted) => {
                let now = &status["currentCPUUtilizationPercentage"];
                format!("cpu: {}/{wanted}%", percent(now, "<unknown>")).into()
            }
            None => targets(list(&spec["metrics"]), list(&status["currentMetrics"])).into(),
        },
    }
}

fn percent(value: &Value, otherwise: &str) -> String {
    match value.as_i64() {
        Some(percent) => format!("{percent}%"),
        None => otherwise.to_owned(),
    }
}

/// So many metrics are written out.
const METRICS_MAX: usize = 2;

fn targets(metrics: &[Value], current: &[Value]) -> String {
    let all = metrics.iter().enumerate();
    let all = all.map(|(at, metric)| target(metric, current.get(at).unwrap_or(&Value::Null)));
    let all: Vec<String> = all.collect();
    match all.len() {
        0 => "<none>".to_owned(),
        len if len <= METRICS_MAX => all.join(", "),
        len => {
            let first = all[..METRICS_MAX].join(", ");
            format!("{first} + {} more...", len - METRICS_MAX)
        }
    }
}

/// What is, and what is wanted, of one metric.
fn target(metric: &Value, current: &Value) -> String {
    let (source, name) = match metric["type"].as_str() {
        Some("ContainerResource") => (
            "containerResource",
            text_or(&metric["containerResource"]["name"], ""),
        ),
        Some("External") => ("external", ""),
        Some("Object") => ("object", ""),
        Some("Pods") => ("pods", ""),
        Some("Resource") => ("resource", text_or(&metric["resource"]["name"], "")),
        _ => return "<unknown type>".to_owned(),
    };
    let (wanted, now) = (&metric[source]["target"], &current[source]["current"]);
    let of = |field: &str| {
        let now = text_or(&now[field], "<unknown>");
        format!("{now}/{}", text_or(&wanted[field], ""))
    };
    let is_average = !wanted["averageValue"].is_null();
    match (name, is_average) {
        ("", true) if source == "pods" => of("averageValue"),
        ("", true) => format!("{} (avg)", of("averageValue")),
        ("", false) => of("value"),
        (name, true) => format!("{name}: {}", of("averageValue")),
        (name, false) => {
            let now = percent(&now["averageUtilization"], "<unknown>");
            let wanted = percent(&wanted["averageUtilization"], "<auto>");
            format!("{name}: {now}/{wanted}")
        }
    }
}
