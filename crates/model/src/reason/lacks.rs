//! What lacks of cards, devices and the group of a node.

use std::sync::Arc;

/// What lacks of a node's cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CardLack {
    /// The task wants so many cores of chips that they are neither whole chips nor a part of one.
    Amount,
    /// Too little is left on cards that the task must share with nobody whom it avoids.
    Avoided,
    /// Fewer cards than are wanted would do, even if nobody used them.
    Few,
    /// The task says in a word that nobody knows how it uses media units of chips.
    Dvpp,
    /// What the node says of its cards cannot be understood.
    Garbled,
    /// They are divided in another way than the task asks for.
    Mode,
    /// The node is being taken out of use: none of its chips is given out.
    SetApart,
    /// A container has one card in part, not several.
    Split,
    /// Too little is left of them.
    Taken,
    /// Parts of another size were given out there that its device plugin has not made yet.
    Unsettled,
    /// Nobody has told which chips there are.
    Untold,
}

impl CardLack {
    pub(super) fn words(self) -> &'static str {
        match self {
            CardLack::Amount => "where so many AI cores are neither whole chips nor a part of one",
            CardLack::Avoided => "with too little left on cards apart from those it avoids",
            CardLack::Dvpp => {
                "with chips, of which its label vnpu-dvpp wants neither yes, no nor null"
            }
            CardLack::Few => "without enough suitable cards",
            CardLack::Garbled => "whose cards cannot be understood",
            CardLack::Mode => "whose cards run in another mode than it asks for",
            CardLack::SetApart => {
                "whose chips are given to nobody, as it is set apart (PreSeparate)"
            }
            CardLack::Split => "of whose cards a container has one in part, not several",
            CardLack::Taken => "with too little left on its cards",
            CardLack::Unsettled => {
                "whose device plugin has yet to make parts of another size (AscendReal)"
            }
            CardLack::Untold => "of whose chips no list of devices is known",
        }
    }
}

/// Why a node's devices do not serve a task's claims.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceLack {
    /// Devices that a claim has already are out of its reach.
    Elsewhere,
    /// They would not do even if nobody held any.
    Few,
    /// Not all of them are told yet.
    Partial,
    /// Others hold them.
    Taken,
    /// A claim cannot be served anywhere.
    Unallocated,
    /// A selector does not say whether it takes one of them.
    Unjudged {
        /// Which selector, and why not.
        why: Arc<str>,
    },
    /// The search for a choice was given up.
    Unsolved,
}

impl DeviceLack {
    pub(super) fn words(&self) -> String {
        let words = match self {
            DeviceLack::Elsewhere => "away from the devices that its claim has",
            DeviceLack::Few => "without the devices that it claims",
            DeviceLack::Partial => "that have not told all of their devices",
            DeviceLack::Taken => "whose devices are taken",
            DeviceLack::Unallocated => "with devices that it may not have yet",
            DeviceLack::Unjudged { why } => return format!("that {why} does not judge"),
            DeviceLack::Unsolved => "with too many devices to choose from",
        };
        words.to_owned()
    }
}

/// Why a node's group is none for a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupLack {
    /// The node is in no group.
    Bare,
    /// The queue names no group at all.
    Unnamed,
    /// The queue uses other groups.
    Unwanted,
}
