//! Where a queue stands in the tree of shares that its annotations describe.

use api::meta::ObjectMeta;
use api::volcano::{HIERARCHY, HIERARCHY_WEIGHTS};
use model::Branch;

/// A weight of 1, in the unit of the tables.
const ONE: i64 = 1000;

/// The greatest weight; beyond it nobody can tell weights apart.
const MOST: f64 = 1e6;

/// The steps below the root, which is the first step whatever it is called. As upstream, weights go by
/// position and count as 1 below that; so does one that is missing or no number.
pub(super) fn of(queue: &ObjectMeta) -> Vec<Branch> {
    let Some(path) = queue.annotations.get(HIERARCHY) else {
        return Vec::new();
    };
    let weights = queue.annotations.get(HIERARCHY_WEIGHTS);
    let mut weights = weights.map_or("", |text| text).split('/').map(weight);
    let steps = path.split('/').map(|name| Branch {
        name: name.into(),
        weight: weights.next().unwrap_or(ONE),
    });
    steps.skip(1).collect()
}

fn weight(text: &str) -> i64 {
    let number = text.trim().parse::<f64>().ok();
    let number = number.filter(|it| it.is_finite()).unwrap_or(1.0);
    // Between 1 and the greatest, so that it is exact to the thousandth.
    (number.clamp(1.0, MOST) * 1000.0).round() as i64
}

#[cfg(test)]
mod tests {
    use super::of;
    use api::meta::ObjectMeta;
    use api::volcano::{HIERARCHY, HIERARCHY_WEIGHTS};

    fn told(path: &str, weights: Option<&str>) -> String {
        let mut meta = ObjectMeta::default();
        meta.annotations.insert(HIERARCHY.into(), path.into());
        if let Some(weights) = weights {
            meta.annotations
                .insert(HIERARCHY_WEIGHTS.into(), weights.into());
        }
        let steps = of(&meta).into_iter();
        let steps = steps.map(|it| format!("{}:{}", it.name, it.weight));
        steps.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn steps_have_the_weights_of_their_positions() {
        assert_eq!(told("root/sci/dev", Some("1/2/3.5")), "sci:2000 dev:3500");
        assert_eq!(told("root/a/b", Some("1/0.5/-4")), "a:1000 b:1000");
        assert_eq!(told("root/a/b", Some("1/x")), "a:1000 b:1000");
        assert_eq!(told("root/a", Some("1/inf")), "a:1000");
        assert_eq!(told("root/a", Some("1/1e300")), "a:1000000000");
        assert_eq!(told("root/a", None), "a:1000");
        assert_eq!(told("root", Some("1")), "");
    }

    #[test]
    fn who_says_nothing_has_no_steps() {
        assert_eq!(of(&ObjectMeta::default()), []);
    }
}
