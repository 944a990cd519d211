//! Wrong answers, planted in what our server showed: the suite must find each.
//!
//! The list is [`LIES`].

use std::path::Path;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::known::Known;
use crate::run::{self, Sight};
use crate::say;
use crate::side::Seen;

/// One lie. It is told at the first step where it can be told.
struct Lie {
    name: &'static str,
    /// Changes what was shown; `None` where there is nothing to change.
    tell: fn(&mut Seen) -> Option<()>,
}

const LIES: &[Lie] = &[
    Lie {
        name: "a cause is missing from an error",
        tell: |seen| {
            body(seen, |body| {
                body.pointer_mut("/details/causes")?
                    .as_array_mut()?
                    .pop()
                    .map(drop)
            })
        },
    },
    Lie {
        name: "a cell of a table says something else",
        tell: |seen| body(seen, |body| set(body, "/rows/0/cells/1", json!("x/y"))),
    },
    Lie {
        name: "a count of what remains is one too high",
        tell: |seen| {
            body(seen, |body| {
                let left = body.pointer("/metadata/remainingItemCount")?.as_i64()?;
                set(body, "/metadata/remainingItemCount", json!(left + 1))
            })
        },
    },
    Lie {
        name: "a default is another one",
        tell: |seen| {
            body(seen, |body| {
                set(body, "/spec/restartPolicy", json!("Never"))
            })
        },
    },
    Lie {
        name: "a deleted object has no deletion time",
        tell: |seen| {
            body(seen, |body| {
                let meta = body.pointer_mut("/metadata")?.as_object_mut()?;
                meta.remove("deletionTimestamp").map(drop)
            })
        },
    },
    Lie {
        name: "a field is missing",
        tell: |seen| {
            body(seen, |body| {
                let spec = body.pointer_mut("/spec")?.as_object_mut()?;
                let key = spec.keys().next()?.clone();
                spec.remove(&key).map(drop)
            })
        },
    },
    Lie {
        name: "a field too many",
        tell: |seen| {
            body(seen, |body| {
                let spec = body.pointer_mut("/spec")?.as_object_mut()?;
                spec.insert("surplus".to_owned(), json!(1));
                Some(())
            })
        },
    },
    Lie {
        name: "a finalizer is gone too early",
        tell: |seen| {
            body(seen, |body| {
                body.pointer_mut("/metadata/finalizers")?
                    .as_array_mut()?
                    .pop()
                    .map(drop)
            })
        },
    },
    Lie {
        name: "a label is lost",
        tell: |seen| {
            body(seen, |body| {
                let labels = body.pointer_mut("/metadata/labels")?.as_object_mut()?;
                let key = labels.keys().next()?.clone();
                labels.remove(&key).map(drop)
            })
        },
    },
    Lie {
        name: "a list in another order",
        tell: |seen| {
            body(seen, |body| {
                let items = body.pointer_mut("/items")?.as_array_mut()?;
                (items.len() > 1).then(|| items.swap(0, 1))
            })
        },
    },
    Lie {
        name: "a list lacks its last item",
        tell: |seen| {
            body(seen, |body| {
                body.pointer_mut("/items")?.as_array_mut()?.pop().map(drop)
            })
        },
    },
    Lie {
        name: "a message with another word",
        tell: |seen| {
            body(seen, |body| {
                let message = body
                    .pointer("/message")?
                    .as_str()?
                    .replace(" not ", " never ");
                set(body, "/message", json!(message))
            })
        },
    },
    Lie {
        name: "a missing event",
        tell: |seen| {
            let events = events(seen)?;
            (events.len() > 1).then(|| drop(events.remove(0)))
        },
    },
    Lie {
        name: "a status code one higher",
        tell: |seen| match seen {
            Seen::Answer(answer) => {
                answer.code += 1;
                Some(())
            }
            Seen::Values(_) => None,
        },
    },
    Lie {
        name: "a time with another precision",
        tell: |seen| {
            body(seen, |body| {
                set(
                    body,
                    "/metadata/creationTimestamp",
                    json!("2026-01-02T03:04:05.000000Z"),
                )
            })
        },
    },
    Lie {
        name: "a verb is missing from discovery",
        tell: |seen| {
            body(seen, |body| {
                body.pointer_mut("/resources/0/verbs")?
                    .as_array_mut()?
                    .pop()
                    .map(drop)
            })
        },
    },
    Lie {
        name: "a warning is not given",
        tell: |seen| {
            let Seen::Answer(answer) = seen else {
                return None;
            };
            let before = answer.headers.len();
            answer.headers.retain(|(name, _)| name != "warning");
            (answer.headers.len() < before).then_some(())
        },
    },
    Lie {
        name: "a write changes nothing",
        tell: |seen| {
            body(seen, |body| {
                let generation = body.pointer("/metadata/generation")?.as_i64()?;
                (generation > 1).then_some(())?;
                set(body, "/metadata/generation", json!(generation - 1))
            })
        },
    },
    Lie {
        name: "an event of another type",
        tell: |seen| {
            let event = events(seen)?
                .iter_mut()
                .find(|event| event["type"] == "MODIFIED")?;
            event["type"] = json!("ADDED");
            Some(())
        },
    },
    Lie {
        name: "an event too many",
        tell: |seen| {
            let events = events(seen)?;
            let first = events.first()?.clone();
            events.insert(0, first);
            Some(())
        },
    },
    Lie {
        name: "an old version",
        tell: |seen| {
            body(seen, |body| {
                (body.pointer("/metadata/generation")?.as_i64()? > 1).then_some(())?;
                set(body, "/metadata/resourceVersion", json!("1"))
            })
        },
    },
    Lie {
        name: "another content type",
        tell: |seen| {
            let Seen::Answer(answer) = seen else {
                return None;
            };
            let header = answer
                .headers
                .iter_mut()
                .find(|(name, _)| name == "content-type")?;
            "text/plain".clone_into(&mut header.1);
            Some(())
        },
    },
    Lie {
        name: "another reason",
        tell: |seen| {
            body(seen, |body| {
                (body.pointer("/kind")? == "Status").then_some(())?;
                set(body, "/reason", json!("BadRequest2"))
            })
        },
    },
    Lie {
        name: "events in another order",
        tell: |seen| {
            let events = events(seen)?;
            (events.len() > 1).then(|| events.swap(0, 1))
        },
    },
    Lie {
        name: "somebody else's uid",
        tell: |seen| {
            body(seen, |body| {
                (body.pointer("/metadata/generation")?.as_i64()? > 1).then_some(())?;
                let stranger = "11111111-2222-4333-8444-555555555555";
                set(body, "/metadata/uid", json!(stranger))
            })
        },
    },
];

/// Changes a JSON body.
fn body(seen: &mut Seen, change: impl FnOnce(&mut Value) -> Option<()>) -> Option<()> {
    let Seen::Answer(answer) = seen else {
        return None;
    };
    let mut value: Value = serde_json::from_slice(&answer.body).ok()?;
    let before = value.clone();
    change(&mut value)?;
    answer.body = Bytes::from(value.to_string());
    (value != before).then_some(())
}

fn set(body: &mut Value, pointer: &str, value: Value) -> Option<()> {
    *body.pointer_mut(pointer)? = value;
    Some(())
}

fn events(seen: &mut Seen) -> Option<&mut Vec<Value>> {
    match seen {
        Seen::Values(events) => events.iter().all(Value::is_object).then_some(events),
        Seen::Answer(_) => None,
    }
}

/// Tells every lie by itself and says which were not found; gives their number.
///
/// A lie is told where both servers agree, so that it is the only thing to be found there.
pub fn missed(transcript: &[Sight], folder: &Path, known: &mut Known) -> anyhow::Result<usize> {
    let agreed = run::agreed(transcript, folder)?;
    let mut missed = 0;
    for lie in LIES {
        let place = transcript.iter().enumerate().find_map(|(at, sight)| {
            agreed[at].then_some(())?;
            let mut told = sight.clone();
            (lie.tell)(&mut told.ours.0).map(|()| (at, told))
        });
        let Some((at, told)) = place else {
            missed += 1;
            say(&format!("planted: nowhere to say: {}", lie.name));
            continue;
        };
        let within = |sight: &&Sight| sight.script == told.script;
        let mut script: Vec<Sight> = transcript.iter().filter(within).cloned().collect();
        let first = transcript
            .iter()
            .position(|sight| sight.script == told.script);
        let step = format!("{}:{}", told.script, told.line);
        let honest = run::judge(&script, known)?.len();
        script[at - first.unwrap_or_default()] = told;
        let found = run::judge(&script, known)?.len();
        if found > honest {
            say(&format!("planted and found: {} ({step})", lie.name));
        } else {
            missed += 1;
            say(&format!("planted and NOT found: {} ({step})", lie.name));
        }
    }
    Ok(missed)
}
