mod story;

use super::*;
use crate::manifest;

fn document() -> Document {
    let text = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata:\n  name: training\nspec:\n  tasks:\n  - name: a\n    replica: 4\n    template: {}\n";
    manifest::parse("job.yaml", text.to_owned())
        .unwrap()
        .remove(0)
}

fn told(message: &str, causes: &[(&str, &str)]) -> String {
    let refusal = Refusal {
        code: 400,
        reason: "BadRequest".to_owned(),
        message: message.to_owned(),
        causes: causes
            .iter()
            .map(|(field, text)| ((*field).to_owned(), (*text).to_owned()))
            .collect(),
    };
    mistakes_of(&document(), anyhow::Error::new(refusal))
        .unwrap()
        .iter()
        .map(Mistake::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn an_unknown_field_is_told_with_file_line_and_path() {
    let message = "Job in version \"v1alpha1\" cannot be handled as a Job: strict decoding error: unknown field \"spec.tasks[0].replica\"";
    insta::assert_snapshot!(told(message, &[]), @"job.yaml:8:5: spec.tasks[0].replica: unknown field");
}

#[test]
fn an_invalid_field_is_told_with_the_line_of_its_nearest_parent() {
    let causes = [("spec.tasks[0].template.spec.containers", "Required value")];
    insta::assert_snapshot!(told("Job is invalid", &causes), @"job.yaml:9:5: spec.tasks[0].template.spec.containers: Required value");
}

#[test]
fn a_denial_is_told_whole_and_found_where_it_names_a_field() {
    insta::assert_snapshot!(told("admission webhook \"validatejob.volcano.sh\" denied the request: spec.tasks[0].replicas < 0", &[]), @r#"job.yaml:7:5: job.batch.volcano.sh/training: admission webhook "validatejob.volcano.sh" denied the request: spec.tasks[0].replicas < 0"#);
}

#[test]
fn other_errors_stay_errors() {
    assert!(mistakes_of(&document(), anyhow::anyhow!("cannot reach the API")).is_err());
}
