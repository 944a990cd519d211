//! Macros: calls that stand for loops and for questions whether a field is there.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, MapExpr, operators,
};
use kube_cel::cel::parser::Expression;

use super::tree::{Measure, Tree, call, node};
use super::{Read, Wrong};

/// Writes a macro out: where it is called, on what, with which arguments.
type Macro = fn(usize, Option<Tree>, Vec<Tree>) -> Read<Tree>;

/// What collects a loop's answer.
pub(crate) const RESULT: &str = "@result";
/// Puts entries into a map.
pub(crate) const MAP_INSERT: &str = "cel.@mapInsert";
/// Sorts a list by a list of keys.
pub(crate) const SORT: &str = "@sortByAssociatedKeys";

/// The macro of a name.
pub(super) fn find(name: &str, has_target: bool, count: usize) -> Option<Macro> {
    Some(match (name, has_target, count) {
        ("has", false, 1) => has,
        ("all", true, 2 | 3) => all,
        ("exists", true, 2 | 3) => exists,
        ("exists_one" | "existsOne", true, 2 | 3) => exists_one,
        ("map", true, 2 | 3) => map,
        ("filter", true, 2) => filter,
        ("optFlatMap", true, 2) => opt_flat_map,
        ("optMap", true, 2) => opt_map,
        ("sortBy", true, 2) => sort_by,
        ("transformList", true, 3 | 4) => transform_list,
        ("transformMap", true, 3 | 4) => transform_map,
        ("transformMapEntry", true, 3 | 4) => transform_map_entry,
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
    second: Option<String>,
    measure: Measure,
}

/// How many names a loop has: one for its items, or one each for keys and values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    One,
    Two,
}

impl Names {
    /// A loop of so many arguments beside its names.
    fn beside(args: &[Tree], count: usize) -> Names {
        match args.len() > count + 1 {
            true => Names::Two,
            false => Names::One,
        }
    }
}

fn simple_name(tree: Tree) -> Read<(usize, String)> {
    let at = tree.expression.id as usize;
    match tree.expression.expr {
        Expr::Ident(name) => Ok((at, name)),
        _ => Err(Wrong::new(at, "argument must be a simple name")),
    }
}

impl Loop {
    /// Takes the range and the names; the other arguments stay.
    fn begin(at: usize, target: Option<Tree>, args: &mut Vec<Tree>, names: Names) -> Read<Loop> {
        let (_, variable) = simple_name(args.remove(0))?;
        let second = match names {
            Names::One => None,
            Names::Two => {
                let (start, second) = simple_name(args.remove(0))?;
                if second == variable {
                    let what = format!("duplicate variable name: {variable}");
                    return Err(Wrong::new(start, what));
                }
                Some(second)
            }
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
            second,
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

    /// A step that is only made where a filter lets it.
    fn filtered(&self, filter: Option<Expression>, step: Expression) -> Expression {
        match filter {
            Some(filter) => self.call(operators::CONDITIONAL, vec![filter, step, self.result()]),
            None => step,
        }
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
            iter_var2: self.second,
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
    let names = Names::beside(&args, 1);
    let mut lap = Loop::begin(at, target, &mut args, names)?;
    let mut step = vec![lap.result()];
    step.extend(lap.measure.take_all_but_nest(args));
    let goes_on = lap.call(operators::NOT_STRICTLY_FALSE, vec![lap.result()]);
    let step = lap.call(operators::LOGICAL_AND, step);
    let (start, result) = (lap.truth(true), lap.result());
    lap.tree(start, goes_on, step, result, 2)
}

fn exists(at: usize, target: Option<Tree>, mut args: Vec<Tree>) -> Read<Tree> {
    let names = Names::beside(&args, 1);
    let mut lap = Loop::begin(at, target, &mut args, names)?;
    let mut step = vec![lap.result()];
    step.extend(lap.measure.take_all_but_nest(args));
    let no = lap.call(operators::LOGICAL_NOT, vec![lap.result()]);
    let goes_on = lap.call(operators::NOT_STRICTLY_FALSE, vec![no]);
    let step = lap.call(operators::LOGICAL_OR, step);
    let (start, result) = (lap.truth(false), lap.result());
    lap.tree(start, goes_on, step, result, 2)
}

fn exists_one(at: usize, target: Option<Tree>, mut args: Vec<Tree>) -> Read<Tree> {
    let names = Names::beside(&args, 1);
    let mut lap = Loop::begin(at, target, &mut args, names)?;
    let mut step = lap.measure.take_all_but_nest(args);
    step.push(lap.call(operators::ADD, vec![lap.result(), lap.number(1)]));
    step.push(lap.result());
    let step = lap.call(operators::CONDITIONAL, step);
    let result = lap.call(operators::EQUALS, vec![lap.result(), lap.number(1)]);
    let (start, goes_on) = (lap.number(0), lap.truth(true));
    lap.tree(start, goes_on, step, result, 2)
}

fn map(at: usize, target: Option<Tree>, args: Vec<Tree>) -> Read<Tree> {
    collected(at, target, args, Names::One)
}

fn transform_list(at: usize, target: Option<Tree>, args: Vec<Tree>) -> Read<Tree> {
    collected(at, target, args, Names::Two)
}

/// A list of what is made of each item, of those that a filter lets through if there is one.
fn collected(at: usize, target: Option<Tree>, mut args: Vec<Tree>, names: Names) -> Read<Tree> {
    let mut lap = Loop::begin(at, target, &mut args, names)?;
    let mut parts = lap.measure.take_all_but_nest(args);
    let item = lap.list(parts.pop().into_iter().collect());
    let step = lap.call(operators::ADD, vec![lap.result(), item]);
    let step = lap.filtered(parts.pop(), step);
    let (start, goes_on, result) = (lap.list(Vec::new()), lap.truth(true), lap.result());
    lap.tree(start, goes_on, step, result, 4)
}

fn transform_map(at: usize, target: Option<Tree>, args: Vec<Tree>) -> Read<Tree> {
    mapped(at, target, args, Entry::OfKey)
}

fn transform_map_entry(at: usize, target: Option<Tree>, args: Vec<Tree>) -> Read<Tree> {
    mapped(at, target, args, Entry::Made)
}

/// What goes into a map: a value for the key of the loop, or entries that are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    OfKey,
    Made,
}

fn mapped(at: usize, target: Option<Tree>, mut args: Vec<Tree>, entry: Entry) -> Read<Tree> {
    let mut lap = Loop::begin(at, target, &mut args, Names::Two)?;
    let mut parts = lap.measure.take_all_but_nest(args);
    let mut taken = vec![lap.result()];
    if entry == Entry::OfKey {
        taken.push(lap.node(Expr::Ident(lap.variable.clone())));
    }
    taken.extend(parts.pop());
    let step = lap.call(MAP_INSERT, taken);
    let step = lap.filtered(parts.pop(), step);
    let start = lap.node(Expr::Map(MapExpr::default()));
    let (goes_on, result) = (lap.truth(true), lap.result());
    lap.tree(start, goes_on, step, result, 4)
}

fn opt_map(at: usize, target: Option<Tree>, args: Vec<Tree>) -> Read<Tree> {
    inside(at, target, args, "optMap")
}

fn opt_flat_map(at: usize, target: Option<Tree>, args: Vec<Tree>) -> Read<Tree> {
    inside(at, target, args, "optFlatMap")
}

/// These stay calls: written out, each would hold its target twice.
fn inside(at: usize, target: Option<Tree>, args: Vec<Tree>, name: &str) -> Read<Tree> {
    if let Some(Tree { expression, .. }) = args.first()
        && !matches!(expression.expr, Expr::Ident(_))
    {
        let start = expression.id as usize;
        let what = format!("{name}() variable name must be a simple identifier");
        return Err(Wrong::new(start, what));
    }
    let mut measure = Measure::default();
    let target = target.map(|target| Box::new(measure.take(target)));
    let args = measure.take_all(args);
    measure.nest = measure.nest.saturating_add(1);
    let call = CallExpr {
        func_name: name.to_owned(),
        target,
        args,
    };
    measure.tree(at, Expr::Call(call))
}

/// `a.sortBy(b, c)`: `a` gets a name, and is sorted by what `c` makes of its items.
fn sort_by(at: usize, target: Option<Tree>, args: Vec<Tree>) -> Read<Tree> {
    const NAME: &str = "@__sortBy_input__";
    let target = target.ok_or_else(|| Wrong::new(at, "a loop needs a range"))?;
    let start = target.expression.id as usize;
    if matches!(
        target.expression.expr,
        Expr::Literal(_) | Expr::Map(_) | Expr::Struct(_)
    ) {
        let what = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return Err(Wrong::new(start, what));
    }
    if let Some(Tree { expression, .. }) = args.first()
        && !matches!(expression.expr, Expr::Ident(_))
    {
        let start = expression.id as usize;
        return Err(Wrong::new(start, "argument is not an identifier"));
    }
    let itself = || node(at, Expr::Ident(NAME.to_owned()));
    let keys = map(at, Some(Tree::leaf(at, Expr::Ident(NAME.to_owned()))), args)?;
    let mut measure = Measure::default();
    let keys = measure.take(keys);
    measure.nest = measure.nest.saturating_add(target.nest);
    let nest = measure.nest;
    let input = measure.take(target);
    measure.nest = nest;
    let sorted = CallExpr {
        func_name: SORT.to_owned(),
        target: Some(Box::new(itself())),
        args: vec![keys],
    };
    let nothing = ListExpr::new_with_optionals(Vec::new(), Vec::new());
    let fold = ComprehensionExpr {
        iter_range: node(at, Expr::List(nothing)),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: NAME.to_owned(),
        accu_init: input,
        loop_cond: node(at, Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: itself(),
        result: node(at, Expr::Call(sorted)),
    };
    measure.raised(at, Expr::Comprehension(Box::new(fold)), 2)
}

fn filter(at: usize, target: Option<Tree>, mut args: Vec<Tree>) -> Read<Tree> {
    let mut lap = Loop::begin(at, target, &mut args, Names::One)?;
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
