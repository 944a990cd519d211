//! Objects and bodies as deltas.

use api::kind::{KINDS, Kind};
use api::token::{Tokens, holds_data};
use mirror::{Change, Object};

use super::super::body::Body;
use super::super::bytes::{number, text};
use super::super::delta::Walker;
use super::super::form::{self, Form};
use super::super::forms::Forms;
use super::super::names::Names;
use super::put_name;

/// What the first byte of an object says.
pub(in super::super) mod flag {
    /// Its base is what was held under its name, which follows.
    pub const HELD: u8 = 1;
    /// Names of fields are explained before it.
    pub const NAMES: u8 = 2;
}

/// Ways to write that have bodies, by their tags.
const HOWS: usize = 6;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Objects {
    tokens: Tokens,
    names: Names,
    forms: Forms,
    /// The last object of each kind that had no base of its own.
    fresh: Vec<Form>,
    /// The last body of each kind and way to write.
    bodies: Vec<Form>,
    delta: Vec<u8>,
}

impl Objects {
    pub(super) fn new(tokens: Tokens) -> Objects {
        let empty = |count| (0..count).map(|_| Form::default()).collect();
        Objects {
            tokens,
            names: Names::of_writer(),
            forms: Forms::default(),
            fresh: empty(KINDS.len()),
            bodies: empty(KINDS.len() * HOWS),
            delta: Vec::new(),
        }
    }

    /// An object that is there now, against what was.
    pub(super) fn changed(&mut self, change: &Change, after: &Object, out: &mut Vec<u8>) {
        let told = self.form_of(after);
        match &change.before {
            Some(before) => {
                let known = self.forms.take(before);
                let base = known.unwrap_or_else(|| self.form_of(before));
                self.flags(flag::HELD, out);
                put_name(&change.key, out);
                self.delta(&base, &told, out);
                self.forms.give_back(base);
            }
            None => self.fresh(after.kind(), &told, out),
        }
        self.forms.keep(after, told);
    }

    /// An object that has gone is no base any more.
    pub(super) fn gone(&mut self, change: &Change) {
        let known = change.before.as_ref().and_then(|it| self.forms.take(it));
        self.forms.give_back(known);
    }

    /// An object without a base of its own.
    pub(super) fn read(&mut self, object: &Object, out: &mut Vec<u8>) {
        let told = self.form_of(object);
        self.fresh(object.kind(), &told, out);
        self.forms.give_back(told);
    }

    fn fresh(&mut self, kind: Kind, told: &Form, out: &mut Vec<u8>) {
        self.flags(0, out);
        let mut base = std::mem::take(&mut self.fresh[kind as usize]);
        self.delta(&base, told, out);
        base.become_of(told);
        self.fresh[kind as usize] = base;
    }

    /// What a write writes, against the last of its kind that was written so.
    pub(super) fn body(&mut self, kind: Kind, how: u8, body: &Body, out: &mut Vec<u8>) {
        let mut told = self.forms.spare();
        body.tell(kind, &self.tokens, &mut told);
        let at = kind as usize * HOWS + usize::from(how);
        let base = std::mem::take(&mut self.bodies[at]);
        self.delta(&base, &told, out);
        self.bodies[at] = told;
        self.forms.give_back(base);
    }

    fn form_of(&mut self, object: &Object) -> Form {
        let mut form = self.forms.spare();
        let mut told = self.forms.spare();
        write(object, &self.tokens, &mut self.names, &mut form, &mut told);
        self.forms.give_back(told);
        form
    }

    fn flags(&mut self, flags: u8, out: &mut Vec<u8>) {
        let names = self.names.unexplained();
        if names.is_empty() {
            out.push(flags);
            return;
        }
        out.push(flags | flag::NAMES);
        number(out, names.len() as u64);
        for name in names {
            text(out, name.as_bytes());
        }
    }

    fn delta(&mut self, base: &Form, told: &Form, out: &mut Vec<u8>) {
        self.delta.clear();
        Walker::walk(base, told, &mut self.delta);
        text(out, &self.delta);
    }
}

/// Puts an object into `form` as the log has it; `told` is for what has to be put down twice.
pub(in super::super) fn write(
    object: &Object,
    tokens: &Tokens,
    names: &mut Names,
    form: &mut Form,
    told: &mut Form,
) {
    form.clear();
    if form::put(object, names, form).is_err() {
        // A key of it is no text, which no object of the mirror has.
        form.clear();
    }
    if form.may_hide || holds_data(object.kind()) {
        form::told(&form.bytes, object.kind(), tokens, names, told);
        std::mem::swap(form, told);
    }
}
