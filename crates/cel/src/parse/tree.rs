//! Trees and their measures, by which they are bounded.

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr};
use kube_cel::cel::parser::Expression;

use super::{Read, Wrong};

/// How deep one rule of the grammar may stand within itself.
const DEPTH_MAX: u16 = 250;
/// How many operators and calls may be made of each other.
const HEIGHT_MAX: u16 = 250;
/// How high a tree may be once macros are written out.
pub(super) const WALK_MAX: u16 = 320;
/// How deep lists, maps and loops may stand in each other, the ranges of loops included.
const NEST_MAX: u16 = 500;

/// An expression and its measures.
pub(super) struct Tree {
    pub(super) expression: Expression,
    /// Operators and calls that are made of each other.
    pub(super) height: u16,
    /// The same, with macros written out.
    pub(super) walk: u16,
    /// How deep its values may be nested.
    pub(super) nest: u16,
}

impl Tree {
    pub(super) fn leaf(at: usize, expr: Expr) -> Tree {
        Tree {
            expression: node(at, expr),
            height: 0,
            walk: 1,
            nest: 0,
        }
    }
}

/// Where an expression stands in the text, in bytes.
pub(crate) fn place_of(expression: &Expression) -> usize {
    (expression.id & PLACE) as usize
}

/// The part of an expression's number that says where it stands.
const PLACE: u64 = 0xffff_ffff;

/// Gives every part a number of its own, beside its place: macros make many parts at one place.
pub(super) fn number(tree: &mut Expression) {
    let mut waiting = vec![tree];
    let mut count = 0;
    while let Some(next) = waiting.pop() {
        next.id |= count << 32;
        count += 1;
        match &mut next.expr {
            Expr::Call(call) => {
                waiting.extend(call.target.as_deref_mut());
                waiting.extend(&mut call.args);
            }
            Expr::Comprehension(fold) => waiting.extend([
                &mut fold.iter_range,
                &mut fold.accu_init,
                &mut fold.loop_cond,
                &mut fold.loop_step,
                &mut fold.result,
            ]),
            Expr::List(list) => waiting.extend(&mut list.elements),
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        waiting.extend([&mut entry.key, &mut entry.value]);
                    }
                }
            }
            Expr::Select(select) => waiting.push(&mut select.operand),
            Expr::Struct(message) => {
                for entry in &mut message.entries {
                    if let EntryExpr::StructField(field) = &mut entry.expr {
                        waiting.push(&mut field.value);
                    }
                }
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }
}

pub(super) fn node(at: usize, expr: Expr) -> Expression {
    Expression {
        id: at as u64,
        expr,
    }
}

pub(super) fn call(name: &str, args: Vec<Expression>) -> Expr {
    Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: None,
        args,
    })
}

/// The measures of a tree that is being made of others.
#[derive(Clone, Copy, Default)]
pub(super) struct Measure {
    pub(super) height: u16,
    pub(super) walk: u16,
    pub(super) nest: u16,
}

impl Measure {
    /// Takes the expression of a part.
    pub(super) fn take(&mut self, part: Tree) -> Expression {
        self.height = self.height.max(part.height);
        self.walk = self.walk.max(part.walk);
        self.nest = self.nest.max(part.nest);
        part.expression
    }

    pub(super) fn take_all(&mut self, parts: Vec<Tree>) -> Vec<Expression> {
        parts.into_iter().map(|part| self.take(part)).collect()
    }

    /// One level higher.
    pub(super) fn tree(self, at: usize, expr: Expr) -> Read<Tree> {
        self.raised(at, expr, 1)
    }

    /// One level higher, which is more once it is written out.
    pub(super) fn raised(self, at: usize, expr: Expr, levels: u16) -> Read<Tree> {
        let height = self.height + 1;
        let walk = self.walk + levels;
        if height > HEIGHT_MAX || walk > WALK_MAX || self.nest > NEST_MAX {
            return Err(Wrong::nowhere("max recursion depth exceeded"));
        }
        Ok(Tree {
            expression: node(at, expr),
            height,
            walk,
            nest: self.nest,
        })
    }
}

/// How deep the rules of the grammar stand within themselves.
#[derive(Clone, Copy, Default)]
pub(super) struct Depth {
    pub(super) expression: u16,
    /// Comparisons.
    pub(super) relation: u16,
    /// Sums and products.
    pub(super) calc: u16,
}

impl Depth {
    pub(super) fn check(self) -> Read<()> {
        if self.expression.max(self.relation).max(self.calc) > DEPTH_MAX {
            let what = format!("expression recursion limit exceeded: {DEPTH_MAX}");
            return Err(Wrong::nowhere(what));
        }
        Ok(())
    }
}
