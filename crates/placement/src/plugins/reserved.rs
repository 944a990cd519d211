//! Reservations that help nobody: a gang that was let in and by now lacks more for itself alone than there
//! is for it, because a guarantee or a ceiling came or nodes went. It cannot start, whatever others do, and
//! what is kept for it would be kept from all others for ever.

use std::cell::OnceCell;

use model::{Gang, GangId, Vector};

use crate::plugin::View;
use crate::settings::Difference;

/// What is kept in vain, reckoned when it is first asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct InVain(OnceCell<Vector>);

impl InVain {
    /// What these gangs have reserved of which `is_too_much` says so alone; `kept` is what counts of a gang.
    /// Where it does not say so of their sum it says so of none. Upstream counts all that is reserved.
    pub(super) fn of(
        &self,
        view: View<'_>,
        gangs: impl IntoIterator<Item = GangId>,
        kept: impl Fn(&Gang) -> &Vector,
        is_too_much: impl Fn(&Vector) -> bool,
    ) -> &Vector {
        self.0.get_or_init(|| {
            let mut in_vain = Vector::ZERO;
            if view.config.as_upstream.contains(&Difference::UsableRoom) {
                return in_vain;
            }
            for gang in gangs.into_iter().map(|id| view.tables.gang(id)) {
                let reserved = kept(gang);
                if is_too_much(reserved) {
                    in_vain.add(reserved);
                }
            }
            in_vain
        })
    }
}
