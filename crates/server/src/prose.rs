//! What Kubernetes' documentation says of its kinds and fields. The build collects it; it lies in
//! the program's file and takes no memory until somebody asks.

/// A line for each definition: its name, a tab, and a JSON object from field to text, with the text
/// of the definition itself under an empty key.
pub(crate) const PROSE: &str = include_str!(concat!(env!("OUT_DIR"), "/prose.txt"));

#[cfg(test)]
mod tests {
    use super::PROSE;

    #[test]
    fn what_is_known_of_pods_and_of_their_fields_was_collected() {
        let line = |name: &str| {
            let mut lines = PROSE.lines().filter_map(|line| line.split_once('\t'));
            let found = lines.find(|(known, _)| *known == name);
            let (_, texts) = found.unwrap_or_else(|| panic!("nothing is told of {name}"));
            serde_json::from_str::<serde_json::Value>(texts).unwrap()
        };
        let pod = line("io.k8s.api.core.v1.Pod");
        for field in ["", "apiVersion", "kind", "metadata", "spec", "status"] {
            assert!(
                pod[field].as_str().is_some_and(|text| text.len() > 20),
                "{field}: {pod}"
            );
        }
        let spec = line("io.k8s.api.core.v1.PodSpec");
        assert!(spec["hostIPC"].as_str().unwrap().contains("ipc namespace"));
        let container = line("io.k8s.api.core.v1.Container");
        assert!(
            container["args"]
                .as_str()
                .unwrap()
                .contains("\"$$(VAR_NAME)\"")
        );
    }
}
