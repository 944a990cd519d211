//! What stands between operators: names, calls, brackets and literals.

use kube_cel::cel::common::ast::{
    EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, MapEntryExpr, MapExpr, StructExpr,
    StructFieldExpr,
};
use kube_cel::cel::parser::Expression;

use super::tree::{Measure, Tree};
use super::words::Kind;
use super::{Read, Reader, Wrong, literal, told};

/// Names that the language keeps for itself.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

impl Reader<'_> {
    /// Expressions up to a closing bracket, which is taken.
    pub(super) fn arguments(&mut self) -> Read<Vec<Tree>> {
        let mut all = Vec::new();
        if self.takes(")") {
            return Ok(all);
        }
        if !begins_operand(self.word().kind) {
            return Err(self.unexpected(told::ARGUMENTS, begins_operand));
        }
        loop {
            all.push(self.expression()?);
            if !self.takes(",") {
                break;
            }
        }
        self.wants(")")?;
        Ok(all)
    }

    pub(super) fn primary(&mut self) -> Read<Tree> {
        let word = self.word();
        match word.kind {
            Kind::Sign("(") => {
                self.next();
                let tree = self.expression()?;
                self.wants(")")?;
                Ok(tree)
            }
            Kind::Sign("[") => self.list(),
            Kind::Sign("{") => self.map(),
            Kind::Sign(".") | Kind::Name => self.named(),
            _ => self.literal(),
        }
    }

    /// A name, or a call of a function that belongs to nobody.
    fn named(&mut self) -> Read<Tree> {
        let dot = self.takes(".");
        let word = self.word();
        if word.kind != Kind::Name {
            let shown = self.shown(word);
            let what = format!("Syntax error: no viable alternative at input '.{shown}'");
            return Err(Wrong::new(word.start, what));
        }
        self.next();
        let name = self.shown(word);
        if RESERVED.contains(&name) {
            let what = format!("reserved identifier: {name}");
            return Err(Wrong::new(word.start, what));
        }
        let name = name.to_owned();
        if self.is_next("(") {
            let open = self.next().start;
            let args = self.arguments()?;
            return self.called(open, None, &name, args);
        }
        let at = word.start - usize::from(dot);
        Ok(Tree::leaf(at, Expr::Ident(name)))
    }

    fn list(&mut self) -> Read<Tree> {
        let at = self.next().start;
        let mut measure = Measure::default();
        let (mut elements, mut optional) = (Vec::new(), Vec::new());
        while !self.is_next("]") {
            if elements.is_empty() && self.takes(",") {
                break;
            }
            let begins = begins_operand(self.word().kind) || self.is_next("?");
            if !begins && !elements.is_empty() {
                break;
            }
            if self.takes("?") {
                optional.push(elements.len());
            }
            elements.push(self.expression()?);
            if !self.takes(",") {
                if !self.is_next("]") {
                    return Err(self.unexpected("{']', ','}", |_| false));
                }
                break;
            }
        }
        self.wants("]")?;
        let elements = measure.take_all(elements);
        measure.nest += 1;
        measure.tree(
            at,
            Expr::List(ListExpr::new_with_optionals(elements, optional)),
        )
    }

    fn map(&mut self) -> Read<Tree> {
        let at = self.next().start;
        let mut measure = Measure::default();
        let mut entries = Vec::new();
        while !self.is_next("}") {
            if entries.is_empty() && self.takes(",") {
                break;
            }
            let optional = self.takes("?");
            let key = self.expression()?;
            let colon = self.wants(":")?.start;
            let value = self.expression()?;
            let entry = MapEntryExpr {
                key: measure.take(key),
                value: measure.take(value),
                optional,
            };
            entries.push(IdedEntryExpr {
                id: colon as u64,
                expr: EntryExpr::MapEntry(entry),
            });
            if !self.takes(",") {
                if !self.is_next("}") {
                    return Err(self.unexpected("{'}', ','}", |_| false));
                }
                break;
            }
        }
        self.wants("}")?;
        measure.nest += 1;
        measure.tree(at, Expr::Map(MapExpr { entries }))
    }

    /// A message with its fields, of which there are none; what it is called is still told.
    pub(super) fn message(&mut self, type_name: String) -> Read<Tree> {
        let at = self.next().start;
        let mut measure = Measure::default();
        let mut entries = Vec::new();
        while !self.is_next("}") {
            if entries.is_empty() && self.takes(",") {
                break;
            }
            let optional = self.takes("?");
            let name = self.next();
            if name.kind != Kind::Name {
                let what = format!(
                    "Syntax error: mismatched input '{}' expecting {{'}}', '?', ',', IDENTIFIER, ESC_IDENTIFIER}}",
                    self.shown(name)
                );
                return Err(Wrong::new(name.start, what));
            }
            let field = self.shown(name).to_owned();
            let colon = self.wants(":")?.start;
            let value = self.expression()?;
            let entry = StructFieldExpr {
                field,
                value: measure.take(value),
                optional,
            };
            entries.push(IdedEntryExpr {
                id: colon as u64,
                expr: EntryExpr::StructField(entry),
            });
            if !self.takes(",") {
                break;
            }
        }
        self.wants("}")?;
        measure.tree(at, Expr::Struct(StructExpr { type_name, entries }))
    }

    fn literal(&mut self) -> Read<Tree> {
        let start = self.word().start;
        let sign = if self.takes("-") { "-" } else { "" };
        let word = self.word();
        let shown = self.shown(word);
        let wrong = |what: &'static str| Wrong::new(start, what);
        let literal = match word.kind {
            Kind::Int => {
                let number = whole(&format!("{sign}{shown}"));
                LiteralValue::Int(number.ok_or_else(|| wrong("invalid int literal"))?.into())
            }
            Kind::Uint => {
                let digits = &shown[..shown.len() - 1];
                let number = match digits.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => digits.parse(),
                };
                let number = number.map_err(|_| wrong("invalid uint literal"))?;
                LiteralValue::UInt(number.into())
            }
            Kind::Float => {
                let number = format!("{sign}{shown}").parse::<f64>().ok();
                let number = number.filter(|number| number.is_finite());
                LiteralValue::Double(
                    number
                        .ok_or_else(|| wrong("invalid double literal"))?
                        .into(),
                )
            }
            Kind::Text => LiteralValue::String(literal::text(shown).map_err(wrong)?.into()),
            Kind::Bytes => LiteralValue::Bytes(literal::bytes(shown).map_err(wrong)?.into()),
            Kind::Sign("true") => LiteralValue::Boolean(true.into()),
            Kind::Sign("false") => LiteralValue::Boolean(false.into()),
            Kind::Sign("null") => LiteralValue::Null,
            _ => return Err(self.unexpected(told::OPERANDS, begins_operand)),
        };
        self.next();
        Ok(Tree::leaf(start, Expr::Literal(literal)))
    }
}

fn begins_operand(kind: Kind) -> bool {
    match kind {
        Kind::End | Kind::Escaped => false,
        Kind::Sign(sign) => matches!(
            sign,
            "[" | "{" | "(" | "." | "-" | "!" | "true" | "false" | "null"
        ),
        _ => true,
    }
}

fn whole(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(&format!("{sign}{digits}"), 16).ok(),
        None => text.parse().ok(),
    }
}

/// What a message could be called: names with dots between them.
pub(super) fn type_name(expression: &Expression) -> Option<String> {
    let mut parts = Vec::new();
    let mut at = expression;
    loop {
        match &at.expr {
            Expr::Ident(name) => {
                parts.push(name.as_str());
                parts.reverse();
                return Some(parts.join("."));
            }
            Expr::Select(select) if !select.test => {
                parts.push(select.field.as_str());
                at = &select.operand;
            }
            _ => return None,
        }
    }
}
