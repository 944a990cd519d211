//! Macros: calls that stand for loops and for questions whether a field is there.

use kube_cel::cel::common::ast::{ComprehensionExpr, Expr, ListExpr, LiteralValue, operators};
use kube_cel::cel::parser::Expression;

use super::tree::{Measure, Tree, call, node};
use super::{Read, Wrong};

/// Writes a macro out: where it is called, on what, with which arguments.
type Macro = fn(usize, Option<Tree>, Vec<Tree>) -> Read<Tree>;

/// What collects a loop's answer.
const RESULT: &str = "@result";

/// The macro of a name.
pub(super) fn find(name: &str, has_target: bool, count: usize) -> Option<Macro> {
    Some(match (name, has_target, count) {
        ("has", false, 1) => has,
        ("all", true, 2) => all,
        ("exists", true, 2) => exists,
        ("exists_one" | "existsOne", true, 2) => exists_one,
        ("map", true, 2 | 3) => map,
        ("filter", true, 2) => filter,
        _ => return None,
    })
}

fn has(at: usize, _: Option<Tree>, mut args: Vec<Tree>) -> Read<Tree> {
    let Some(Tree {
        expression,
        height,
        walk,
        nest,
    }) = args.pop()
    else {
        return Err(Wrong::new(at, "invalid argument to has() macro"));
    };
    let start = expression.id as usize;
    let Expr::Select(mut select) = expression.expr else {
        return Err(Wrong::new(start, "invalid argument to has() macro"));
    };
    select.test = true;
    Ok(Tree {
        expression: node(at, Expr::Select(select)),
        height,
        walk,
        nest,
    })
}

/// A loop that is being written out.
struct Loop {
    at: usize,
    range: Expression,
    variable: String,
    measure: Measure,
}

impl Loop {
    /// Takes the range and the variable; the other arguments stay.
    fn begin(at: usize, target: Option<Tree>, args: &mut Vec<Tree>) -> Read<Loop> {
        let first = args.remove(0).expression;
        let Expr::Ident(variable) = first.expr else {
            let start = first.id as usize;
            return Err(Wrong::new(start, "argument must be a simple name"));
        };
        let target = target.ok_or_else(|| Wrong::new(at, "a loop needs a range"))?;
        let mut measure = Measure::default();
        let nest = target.nest;
        let range = measure.take(target);
        // What goes on inside may be made of the range's items, and the answer of what was made.
        let inside = args.iter().map(|arg| arg.nest).max().unwrap_or(0);
        measure.nest = nest.saturating_add(inside).saturating_add(1);
        Ok(Loop {
            at,
            range,
            variable,
            measure,
        })
    }

    fn node(&self, expr: Expr) -> Expression {
        node(self.at, expr)
    }

    fn result(&self) -> Expression {
        self.node(Expr::Ident(RESULT.to_owned()))
    }

    fn truth(&self, truth: bool) -> Expression {
        self.node(Expr::Literal(LiteralValue::Boolean(truth.into())))
    }

    fn number(&self, number: i64) -> Expression {
        self.node(Expr::Literal(LiteralValue::Int(number.into())))
    }

    fn list(&self, elements: Vec<Expression>) -> Expression {
        self.node(Expr::List(ListExpr::new_with_optionals(
            elements,
            Vec::new(),
        )))
    }

    fn call(&self, name: &str, args: Vec<Expression>) -> Expression {
        self.node(call(name, args))
    }

    /// `start`, then `step` for every item while `goes_on`; in the end `result`.
    fn tree(
        self,
        start: Expression,
        goes_on: Expression,
        step: Expression,
        result: Expression,
        levels: u16,
    ) -> Read<Tree> {
        let fold = ComprehensionExpr {
            iter_range: self.range,
            iter_var: self.variable,
            iter_var2: None,
            accu_var: RESULT.to_owned(),
            accu_init: start,
            loop_cond: goes_on,
            loop_step: step,
            result,
        };
        self.measure
            .raised(self.at, Expr::Comprehension(Box::new(fold)), levels)
    }
}

fn all(at: usize, target: Option<Tree>, mut args: Vec<Tree>) -> Read<Tree> {
    let mut lap = Loop::begin(at, target, &mut args)?;
    let mut step = vec![lap.result()];
    step.extend(lap.measure.take_all_but_nest(args));
    let goes_on = lap.call(operators::NOT_STRICTLY_FALSE, vec![lap.result()]);
    let step = lap.call(operators::LOGICAL_AND, step);
    let (start, result) = (lap.truth(true), lap.result());
    lap.tree(start, goes_on, step, result, 2)
}

fn exists(at: usize, target: Option<Tree>, mut args: Vec<Tree>) -> Read<Tree> {
    let mut lap = Loop::begin(at, target, &mut args)?;
    let mut step = vec![lap.result()];
    step.extend(lap.measure.take_all_but_nest(args));
    let no = lap.call(operators::LOGICAL_NOT, vec![lap.result()]);
    let goes_on = lap.call(operators::NOT_STRICTLY_FALSE, vec![no]);
    let step = lap.call(operators::LOGICAL_OR, step);
    let (start, result) = (lap.truth(false), lap.result());
    lap.tree(start, goes_on, step, result, 2)
}

fn exists_one(at: usize, target: Option<Tree>, mut args: Vec<Tree>) -> Read<Tree> {
    let mut lap = Loop::begin(at, target, &mut args)?;
    let mut step = lap.measure.take_all_but_nest(args);
    step.push(lap.call(operators::ADD, vec![lap.result(), lap.number(1)]));
    step.push(lap.result());
    let step = lap.call(operators::CONDITIONAL, step);
    let result = lap.call(operators::EQUALS, vec![lap.result(), lap.number(1)]);
    let (start, goes_on) = (lap.number(0), lap.truth(true));
    lap.tree(start, goes_on, step, result, 2)
}

fn map(at: usize, target: Option<Tree>, mut args: Vec<Tree>) -> Read<Tree> {
    let mut lap = Loop::begin(at, target, &mut args)?;
    let mut parts = lap.measure.take_all_but_nest(args);
    let item = lap.list(parts.pop().into_iter().collect());
    let mut step = lap.call(operators::ADD, vec![lap.result(), item]);
    if let Some(filter) = parts.pop() {
        step = lap.call(operators::CONDITIONAL, vec![filter, step, lap.result()]);
    }
    let (start, goes_on, result) = (lap.list(Vec::new()), lap.truth(true), lap.result());
    lap.tree(start, goes_on, step, result, 4)
}

fn filter(at: usize, target: Option<Tree>, mut args: Vec<Tree>) -> Read<Tree> {
    let mut lap = Loop::begin(at, target, &mut args)?;
    let mut step = lap.measure.take_all_but_nest(args);
    let item = lap.list(vec![lap.node(Expr::Ident(lap.variable.clone()))]);
    step.push(lap.call(operators::ADD, vec![lap.result(), item]));
    step.push(lap.result());
    let step = lap.call(operators::CONDITIONAL, step);
    let (start, goes_on, result) = (lap.list(Vec::new()), lap.truth(true), lap.result());
    lap.tree(start, goes_on, step, result, 2)
}

impl Measure {
    /// Takes parts whose nesting has been reckoned with.
    fn take_all_but_nest(&mut self, parts: Vec<Tree>) -> Vec<Expression> {
        let nest = self.nest;
        let expressions = self.take_all(parts);
        self.nest = nest;
        expressions
    }
}
