//! What tiers say of a gang, one after the other: the first that has a say decides.

use model::GangId;

use super::Rules;
use crate::plugin::{GangCheck, Plugin, View};
use crate::settings::Difference;

impl Rules {
    /// What the first tier that has a say says of the gang: yes if all of its plugins do.
    fn first_tier(
        &self,
        view: View<'_>,
        gang: GangId,
        hook: fn(&Plugin) -> Option<GangCheck>,
    ) -> Option<bool> {
        self.tiers.iter().find_map(|tier| {
            let mut said = tier.iter().filter_map(hook).peekable();
            said.peek()?;
            Some(said.all(|f| f(view, gang)))
        })
    }

    /// Whether enough of the gang is placed or promised room: a tier that says no refuses, one that
    /// says yes ends the asking.
    pub(crate) fn job_pipelined(&self, view: View<'_>, gang: GangId) -> bool {
        let said = self.first_tier(view, gang, |plugin| plugin.job_pipelined);
        said.unwrap_or(true)
    }

    /// Whether the gang holds what it can get although that is not enough: a way of upstream's, of a plugin that
    /// lets it wait for the rest before any tier is asked whether that is enough.
    pub(crate) fn holds_in_part(&self, view: View<'_>, gang: GangId) -> bool {
        if !self.is_as_upstream(Difference::UsableRoom) {
            return false;
        }
        let is_asked = |tier: &&Vec<Plugin>| tier.iter().all(|row| row.job_pipelined.is_none());
        let before = self.tiers.iter().take_while(is_asked).flatten();
        let mut checks = before.filter_map(|row| row.holds_in_part);
        checks.any(|check| check(view, gang))
    }

    /// Whether the gang may take others' room: the first tier that has an opinion decides.
    pub(crate) fn job_starving(&self, view: View<'_>, gang: GangId) -> bool {
        let said = self.first_tier(view, gang, |plugin| plugin.job_starving);
        said.unwrap_or(false)
    }
}
