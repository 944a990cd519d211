//! Reads expressions.
//!
//! What an expression may be is bounded as the real server bounds it, so that whoever walks a tree
//! may call itself: a tree that is let through is never higher than `WALK_MAX`, and no value that
//! it makes is nested deeper than `NEST_MAX` beside its input. Chains of `&&` and `||` are
//! balanced and may be long.
//!
//! The number of an expression says where it stands in the text (`place_of`) and which it is there.

mod literal;
mod macros;
mod primary;
mod told;
mod tree;
mod words;

use kube_cel::cel::common::ast::{CallExpr, Expr, LiteralValue, SelectExpr, operators};
use kube_cel::cel::parser::Expression;

use super::check::Mistake;
pub(super) use macros::{MAP_INSERT, RESULT, SORT};
use primary::type_name;
pub(super) use tree::place_of;
use tree::{Depth, Measure, Tree, call, node};
use words::{Kind, Word};

/// Most characters of an expression.
const LETTERS_MAX: usize = 100_000;
/// Why a text is no expression.
#[derive(Debug, PartialEq)]
struct Wrong {
    /// Where, in bytes; `None` if it is nothing at one place.
    at: Option<usize>,
    what: String,
}

impl Wrong {
    fn new(at: usize, what: impl Into<String>) -> Wrong {
        Wrong {
            at: Some(at),
            what: what.into(),
        }
    }

    fn nowhere(what: impl Into<String>) -> Wrong {
        Wrong {
            at: None,
            what: what.into(),
        }
    }
}

type Read<T> = Result<T, Wrong>;

/// Reads an expression.
///
/// # Errors
/// What is wrong with it, in the words of the real server.
pub(super) fn parse(text: &str) -> Result<Expression, String> {
    let letters = text.chars().count();
    if letters > LETTERS_MAX {
        let what = format!(
            "expression code point size exceeds limit: size: {letters}, limit {LETTERS_MAX}"
        );
        return Err(told::refusal(text, &[Wrong::nowhere(what)]));
    }
    let (words, strange) = words::read(text);
    let mut wrongs: Vec<Wrong> = strange
        .into_iter()
        .map(|(start, end)| {
            let strange = &text[start..end];
            let what = format!("Syntax error: token recognition error at: '{strange}'");
            Wrong::new(start, what)
        })
        .collect();
    match read(text, words) {
        Ok(mut expression) if wrongs.is_empty() => {
            tree::number(&mut expression);
            return Ok(expression);
        }
        Ok(_) => {}
        Err(wrong) => wrongs.push(wrong),
    }
    wrongs.sort_by_key(|wrong| wrong.at);
    Err(told::refusal(text, &wrongs))
}

/// What is told of a text whose parts do not fit each other, where `more` mistakes are not named.
pub(super) fn told(text: &str, mistakes: &[Mistake], more: usize) -> String {
    let wrongs = mistakes
        .iter()
        .map(|mistake| Wrong::new(mistake.at, &*mistake.what));
    let wrongs: Vec<Wrong> = wrongs.collect();
    let told = told::refusal(text, &wrongs);
    match more {
        0 => told,
        more => format!("{told}\n{more} more errors were truncated"),
    }
}

fn read(text: &str, words: Vec<Word>) -> Read<Expression> {
    let mut reader = Reader {
        text,
        words,
        at: 0,
        depth: Depth::default(),
    };
    let tree = reader.expression()?;
    match reader.word().kind {
        Kind::End => Ok(tree.expression),
        _ => Err(reader.unexpected("<EOF>", |kind| kind == Kind::End)),
    }
}

/// An operator that waits for what is on its right.
struct Waiting {
    at: usize,
    sign: &'static str,
    power: u8,
}

/// Operators between two operands: how strongly they bind, and what they are called.
fn binary(kind: Kind) -> Option<(u8, &'static str, &'static str)> {
    let Kind::Sign(sign) = kind else { return None };
    let (power, name) = match sign {
        "||" => (OR, operators::LOGICAL_OR),
        "&&" => (AND, operators::LOGICAL_AND),
        "<" => (RELATION, operators::LESS),
        "<=" => (RELATION, operators::LESS_EQUALS),
        ">=" => (RELATION, operators::GREATER_EQUALS),
        ">" => (RELATION, operators::GREATER),
        "==" => (RELATION, operators::EQUALS),
        "!=" => (RELATION, operators::NOT_EQUALS),
        "in" => (RELATION, operators::IN),
        "+" => (SUM, operators::ADD),
        "-" => (SUM, operators::SUBSTRACT),
        "*" => (PRODUCT, operators::MULTIPLY),
        "/" => (PRODUCT, operators::DIVIDE),
        "%" => (PRODUCT, operators::MODULO),
        _ => return None,
    };
    Some((power, name, sign))
}

const OR: u8 = 1;
const AND: u8 = 2;
const RELATION: u8 = 3;
const SUM: u8 = 4;
const PRODUCT: u8 = 5;

struct Reader<'a> {
    text: &'a str,
    words: Vec<Word>,
    at: usize,
    depth: Depth,
}

impl Reader<'_> {
    fn word(&self) -> Word {
        self.words[self.at]
    }

    fn shown(&self, word: Word) -> &str {
        match word.kind {
            Kind::End => "<EOF>",
            _ => &self.text[word.start..word.end],
        }
    }

    fn next(&mut self) -> Word {
        let word = self.word();
        // The last word stays.
        self.at = (self.at + 1).min(self.words.len() - 1);
        word
    }

    fn is_next(&self, sign: &str) -> bool {
        matches!(self.word().kind, Kind::Sign(next) if next == sign)
    }

    /// Takes a sign if it is next.
    fn takes(&mut self, sign: &str) -> bool {
        let is_next = self.is_next(sign);
        if is_next {
            self.next();
        }
        is_next
    }

    fn wants(&mut self, sign: &'static str) -> Read<Word> {
        if self.is_next(sign) {
            return Ok(self.next());
        }
        Err(self.unexpected(&format!("'{sign}'"), |kind| kind == Kind::Sign(sign)))
    }

    /// What an expression is: a choice, or something that it could choose by.
    fn expression(&mut self) -> Read<Tree> {
        let outer = self.depth;
        self.depth.expression += 1;
        self.depth.check()?;
        let question = self.operations()?;
        let answer = match self.is_next("?") {
            true => self.choice(question),
            false => Ok(question),
        };
        self.depth = outer;
        answer
    }

    fn choice(&mut self, question: Tree) -> Read<Tree> {
        let at = self.next().start;
        let yes = self.operations()?;
        self.wants(":")?;
        let no = self.expression()?;
        let mut measure = Measure::default();
        let args = measure.take_all(vec![question, yes, no]);
        measure.tree(at, call(operators::CONDITIONAL, args))
    }

    /// Operands with operators between them; this function does not call itself for an operator
    /// that waits for another.
    fn operations(&mut self) -> Read<Tree> {
        let outer = self.depth;
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut done: Vec<Tree> = Vec::new();
        loop {
            let of = |from: u8, to: u8| {
                let is_of = |one: &&Waiting| (from..=to).contains(&one.power);
                waiting
                    .iter()
                    .rev()
                    .take_while(|one| one.power >= RELATION)
                    .filter(is_of)
                    .count()
            };
            self.depth.relation = outer.relation + 1 + of(RELATION, RELATION) as u16;
            self.depth.calc = outer.calc + 1 + of(SUM, PRODUCT) as u16;
            self.depth.check()?;
            done.push(self.unary()?);
            self.depth = outer;
            let next = binary(self.word().kind);
            let power = next.map_or(0, |(power, ..)| power);
            while let Some(top) = waiting.last() {
                // One that reads from left to right takes what is there; `&&` waits for all of its kind.
                if top.power < power || top.power == power && power <= AND {
                    break;
                }
                reduce(&mut waiting, &mut done)?;
            }
            match next {
                Some((power, _, sign)) => waiting.push(Waiting {
                    at: self.next().start,
                    sign,
                    power,
                }),
                None => break,
            }
        }
        done.pop()
            .ok_or_else(|| Wrong::nowhere("there is no operand"))
    }

    fn unary(&mut self) -> Read<Tree> {
        let first = self.word();
        let (sign, name) = match first.kind {
            Kind::Sign("!") => ("!", operators::LOGICAL_NOT),
            Kind::Sign("-") => ("-", operators::NEGATE),
            _ => return self.member(),
        };
        let mut count = 0usize;
        while self.takes(sign) {
            count += 1;
        }
        let is_number = matches!(self.word().kind, Kind::Int | Kind::Float);
        if sign == "-" && is_number {
            // The last sign is the number's.
            count -= 1;
            self.at -= 1;
        }
        let operand = self.member()?;
        // Two of them undo each other.
        if count.is_multiple_of(2) {
            return Ok(operand);
        }
        let mut measure = Measure::default();
        let args = vec![measure.take(operand)];
        measure.tree(first.start, call(name, args))
    }

    fn member(&mut self) -> Read<Tree> {
        let mut tree = self.primary()?;
        loop {
            let op = self.word();
            tree = match op.kind {
                Kind::Sign(".") => self.selected(tree)?,
                Kind::Sign("[") => self.indexed(tree)?,
                Kind::Sign("{") => match type_name(&tree.expression) {
                    Some(name) => self.message(name)?,
                    None => return Ok(tree),
                },
                _ => return Ok(tree),
            };
        }
    }

    fn selected(&mut self, tree: Tree) -> Read<Tree> {
        let dot = self.next();
        let is_optional = self.takes("?");
        let name = self.next();
        match name.kind {
            Kind::Name => {}
            Kind::Escaped => return Err(Wrong::new(name.start, "unsupported syntax: '`'")),
            _ => {
                let what = format!(
                    "Syntax error: no viable alternative at input '.{}'",
                    if name.kind == Kind::End {
                        ""
                    } else {
                        self.shown(name)
                    }
                );
                return Err(Wrong::new(name.start, what));
            }
        }
        let field = self.shown(name).to_owned();
        let mut measure = Measure::default();
        if !is_optional && self.is_next("(") {
            let open = self.next().start;
            let args = self.arguments()?;
            return self.called(open, Some(tree), &field, args);
        }
        let operand = measure.take(tree);
        if is_optional {
            measure.nest += 1;
            let literal = Expr::Literal(LiteralValue::String(field.into()));
            let args = vec![operand, node(dot.start, literal)];
            return measure.tree(dot.start, call(operators::OPT_SELECT, args));
        }
        let select = SelectExpr {
            operand: Box::new(operand),
            field,
            test: false,
        };
        measure.tree(dot.start, Expr::Select(select))
    }

    fn indexed(&mut self, tree: Tree) -> Read<Tree> {
        let at = self.next().start;
        let is_optional = self.takes("?");
        let index = self.expression()?;
        self.wants("]")?;
        let mut measure = Measure::default();
        let args = measure.take_all(vec![tree, index]);
        let name = match is_optional {
            true => operators::OPT_INDEX,
            false => operators::INDEX,
        };
        measure.nest += u16::from(is_optional);
        measure.tree(at, call(name, args))
    }

    /// A call, or what it stands for if it is a macro.
    fn called(
        &mut self,
        at: usize,
        target: Option<Tree>,
        name: &str,
        args: Vec<Tree>,
    ) -> Read<Tree> {
        if let Some(is) = macros::find(name, target.is_some(), args.len()) {
            return is(at, target, args);
        }
        let mut measure = Measure::default();
        let target = target.map(|target| Box::new(measure.take(target)));
        let args = measure.take_all(args);
        // It may wrap what it is given.
        measure.nest += u16::from(!args.is_empty());
        let call = CallExpr {
            func_name: name.to_owned(),
            target,
            args,
        };
        measure.tree(at, Expr::Call(call))
    }

    /// What is said of a word that cannot stand where it stands: it is too much if what is wanted
    /// comes behind it.
    fn unexpected(&self, wanted: &str, is_wanted: impl Fn(Kind) -> bool) -> Wrong {
        let word = self.word();
        let shown = self.shown(word);
        let behind = self.words.get(self.at + 1);
        let what = match behind {
            Some(behind) if is_wanted(behind.kind) => {
                format!("Syntax error: extraneous input '{shown}' expecting {wanted}")
            }
            None if matches!(wanted, "')'" | "']'") => {
                format!("Syntax error: missing {wanted} at '{shown}'")
            }
            _ => format!("Syntax error: mismatched input '{shown}' expecting {wanted}"),
        };
        Wrong::new(word.start, what)
    }
}

/// Makes one of the last operator and its operands, or of a whole chain of `&&` or `||`.
fn reduce(waiting: &mut Vec<Waiting>, done: &mut Vec<Tree>) -> Read<()> {
    let Some(last) = waiting.pop() else {
        return Ok(());
    };
    let mut places = vec![last.at];
    let (_, name, _) =
        binary(Kind::Sign(last.sign)).ok_or_else(|| Wrong::nowhere("no operator"))?;
    while last.power <= AND && waiting.last().is_some_and(|next| next.power == last.power) {
        places.extend(waiting.pop().map(|next| next.at));
    }
    places.reverse();
    let operands = done.split_off(done.len().saturating_sub(places.len() + 1));
    let mut measure = Measure::default();
    let operands = measure.take_all(operands);
    // A balanced tree of them is as high as their number has digits.
    let levels = (places.len() + 1).next_power_of_two().trailing_zeros() as u16;
    let mut tree = measure.raised(places[0], Expr::Unspecified, levels)?;
    tree.expression = balanced(name, &places, operands);
    done.push(tree);
    Ok(())
}

/// The middle one of the operators stands highest.
fn balanced(name: &str, places: &[usize], mut operands: Vec<Expression>) -> Expression {
    if places.is_empty() {
        return operands.pop().unwrap_or_default();
    }
    let middle = places.len() / 2;
    let right = operands.split_off(middle + 1);
    let left = balanced(name, &places[..middle], operands);
    let right = balanced(name, &places[middle + 1..], right);
    node(places[middle], call(name, vec![left, right]))
}
