//! Commands: whom each is for.
//!
//! A command names its target by kind, name and uid.

use std::sync::Arc;

use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::volcano::Command;
use mirror::{Index, Mirror};

use crate::{Inputs, Step, write};

/// The commands for whatever bears a name, the oldest first, but those that are going.
pub(crate) fn of(mirror: &Mirror, key: &ObjectKey) -> Vec<Arc<Command>> {
    let named = mirror.indexed::<Command>(Index::CommandTarget, &key.namespace, &key.name);
    let is_for = |command: &&Arc<Command>| {
        command.metadata.deletion_timestamp.is_none() && command.addressee().as_ref() == Some(key)
    };
    let mut commands: Vec<Arc<Command>> = named.filter(is_for).cloned().collect();
    commands.sort_by_key(|command| {
        let meta = &command.metadata;
        (meta.creation_timestamp, meta.revision(), meta.name.clone())
    });
    commands
}

/// Whether a command is for another object than the one of this uid that bears the name: mostly for a
/// former one. One that gives no uid is for whoever bears the name.
pub(crate) fn is_stray(command: &Command, uid: &str) -> bool {
    let target = command.target.as_ref();
    target.is_some_and(|target| !target.uid.is_empty() && *target.uid != *uid)
}

/// What to do before it can be told of commands whether those whom they are for are there: an object may
/// be younger than what has been seen of its kind. `None` where it can be told.
pub(crate) fn before_strays(inputs: &Inputs<'_>, commands: &[Arc<Command>]) -> Option<Step> {
    let named = |command: &Command| {
        let uid = command.target.as_ref().map_or("", |target| &target.uid);
        inputs.before_presence(
            [(inputs.key.clone(), uid)].into_iter(),
            command.metadata.revision(),
        )
    };
    commands.iter().find_map(|command| named(command))
}

/// Takes away the commands for an object that is not there.
pub(crate) fn clear(inputs: &Inputs<'_>) -> Step {
    let commands = of(inputs.mirror, inputs.key);
    if let Some(first) = before_strays(inputs, &commands) {
        return first;
    }
    let spent = commands.iter().take(inputs.settings.writes_per_step_max);
    Step::write(spent.map(|command| spend(command)).collect())
}

/// Takes a command away.
pub(crate) fn spend(command: &Command) -> Intent {
    write::delete(Kind::Command, &command.metadata)
}
