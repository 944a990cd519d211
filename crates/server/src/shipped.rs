//! Definitions of kinds that this program brings.

use serde_json::Value;
use store::wire::Wire;

/// The CustomResourceDefinitions of these groups and of those that end in `.` and one of them
/// (`volcano.sh` stands for `batch.volcano.sh`, too), as objects that `kubectl apply` takes. Who puts
/// them into a chart of Helm's keeps them when it is uninstalled, and with them all of their objects.
pub fn definitions(groups: &[String]) -> Vec<Value> {
    let wire = Wire::load();
    let is_wanted = |group: &str| {
        let above = |wanted: &&String| {
            let rest = group.strip_suffix(wanted.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        groups.iter().any(|wanted| above(&wanted))
    };
    let all = wire.crds().iter().map(|crd| crd.object(&wire));
    let wanted = all.filter(|crd| is_wanted(crd["spec"]["group"].as_str().unwrap_or_default()));
    let kept = wanted.map(|mut crd| {
        crd["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep".into();
        crd
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(groups: &[&str]) -> Vec<String> {
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        let all = definitions(&groups).into_iter();
        all.map(|crd| {
            crd["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
    }

    #[test]
    fn definitions_stay_when_their_chart_goes() {
        let all = definitions(&["volcano.sh".to_owned()]);
        assert_eq!(all.len(), 11);
        for crd in all {
            let annotations = &crd["metadata"]["annotations"];
            assert_eq!(annotations["helm.sh/resource-policy"], "keep", "{crd}");
        }
    }

    #[test]
    fn a_group_stands_for_those_below_it() {
        let volcano = names(&["volcano.sh"]);
        assert!(volcano.contains(&"jobs.batch.volcano.sh".to_owned()));
        assert!(volcano.iter().all(|name| name.ends_with(".volcano.sh")));
        assert_eq!(names(&["bus.volcano.sh"]), ["commands.bus.volcano.sh"]);
        assert_eq!(names(&["cano.sh"]), [""; 0]);
        assert_eq!(names(&[]), [""; 0]);
    }
}
