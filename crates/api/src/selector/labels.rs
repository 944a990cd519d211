//! The text form of label selectors: `a=b,c in (d,e),!f`.

use super::lexer::{Lexer, Token};
use crate::names::{check_label_value, check_qualified, go_quote};

/// All requirements must hold; none at all matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelQuery {
    requirements: Vec<Requirement>,
}

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label.
    pub key: Box<str>,
    /// How it is compared.
    pub operator: Operator,
    /// With what; sorted, without doubles.
    pub values: Vec<Box<str>>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`; holds for absent labels.
    NotIn,
    /// `key=a`
    Equals,
    /// `key==a`
    DoubleEquals,
    /// `key!=a`; holds for absent labels.
    NotEquals,
    /// `key>1`
    GreaterThan,
    /// `key<1`
    LessThan,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
}

impl Operator {
    /// Whether a label with this value (`None` if absent) stands so to these values.
    pub fn holds(self, value: Option<&str>, values: &[Box<str>]) -> bool {
        let among = |value: &str| values.iter().any(|known| &**known == value);
        match self {
            Operator::In | Operator::Equals | Operator::DoubleEquals => value.is_some_and(among),
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(among),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let number = |text: &str| text.parse::<i64>().ok();
                let ([bound], Some(value)) = (values, value.and_then(number)) else {
                    return false;
                };
                number(bound).is_some_and(|bound| match self {
                    Operator::GreaterThan => value > bound,
                    _ => value < bound,
                })
            }
        }
    }
}

impl Requirement {
    /// A checked requirement, or what Kubernetes says is wrong with it.
    pub fn new(
        key: &str,
        operator: Operator,
        mut values: Vec<Box<str>>,
    ) -> Result<Requirement, String> {
        let mut complaints = Vec::new();
        let key_complaints = check_qualified(key);
        if !key_complaints.is_empty() {
            complaints.push(invalid("key", key, &key_complaints.join("; ")));
        }
        if let Some(complaint) = count_complaint(operator, &values) {
            let shown: Vec<String> = values.iter().map(|value| go_quote(value)).collect();
            complaints.push(format!(
                "values: Invalid value: [{}]: {complaint}",
                shown.join(",")
            ));
        }
        for (index, value) in values.iter().enumerate() {
            if matches!(operator, Operator::GreaterThan | Operator::LessThan)
                && value.parse::<i64>().is_err()
            {
                complaints.push(invalid(
                    &format!("values[{index}]"),
                    value,
                    "for 'Gt', 'Lt' operators, the value must be an integer",
                ));
            }
        }
        for (index, value) in values.iter().enumerate() {
            let value_complaints = check_label_value(value);
            if !value_complaints.is_empty() {
                let path = format!("values[{index}][{key}]");
                complaints.push(invalid(&path, value, &value_complaints.join("; ")));
            }
        }
        match complaints.len() {
            0 => {}
            1 => return Err(complaints.remove(0)),
            _ => return Err(format!("[{}]", complaints.join(", "))),
        }
        values.sort();
        values.dedup();
        Ok(Requirement {
            key: key.into(),
            operator,
            values,
        })
    }
}

fn count_complaint(operator: Operator, values: &[Box<str>]) -> Option<&'static str> {
    match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            Some("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
            Some("values set must be empty for exists and does not exist")
        }
        _ => None,
    }
}

fn invalid(path: &str, value: &str, detail: &str) -> String {
    format!("{path}: Invalid value: {}: {detail}", go_quote(value))
}

impl LabelQuery {
    /// The requirements, sorted by key.
    pub fn of(mut requirements: Vec<Requirement>) -> LabelQuery {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        LabelQuery { requirements }
    }

    /// Reads the text of a `labelSelector` parameter. The error is Kubernetes' text.
    pub fn parse(text: &str) -> Result<LabelQuery, String> {
        let mut lexer = Lexer::new(text);
        let mut requirements = Vec::new();
        loop {
            match lexer.peek_value() {
                Token::Word | Token::Not => {}
                Token::End => return Ok(LabelQuery::of(requirements)),
                _ => {
                    let literal = lexer.literal();
                    return Err(format!(
                        "found '{literal}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
            let requirement = requirement(&mut lexer)
                .map_err(|cause| format!("unable to parse requirement: {cause}"))?;
            requirements.push(requirement);
            match lexer.next_value() {
                (Token::End, _) => return Ok(LabelQuery::of(requirements)),
                (Token::Comma, _) => {
                    if !matches!(lexer.peek_value(), Token::Word | Token::Not) {
                        let literal = lexer.literal();
                        return Err(format!("found '{literal}', expected: identifier after ','"));
                    }
                }
                (_, literal) => {
                    return Err(format!(
                        "found '{literal}', expected: ',' or 'end of string'"
                    ));
                }
            }
        }
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether labels match, looked up by key.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements
            .iter()
            .all(|needed| needed.operator.holds(label(&needed.key), &needed.values))
    }
}

fn requirement(lexer: &mut Lexer<'_>) -> Result<Requirement, String> {
    let (mut token, mut literal) = lexer.next_value();
    let negated = token == Token::Not;
    if negated {
        (token, literal) = lexer.next_value();
    }
    if token != Token::Word {
        return Err(format!("found '{literal}', expected: identifier"));
    }
    let key = literal;
    let complaints = check_qualified(key);
    if !complaints.is_empty() {
        return Err(invalid("<nil>", key, &complaints.join("; ")));
    }
    if negated {
        return Requirement::new(key, Operator::DoesNotExist, Vec::new());
    }
    if matches!(lexer.peek_value(), Token::End | Token::Comma) {
        return Requirement::new(key, Operator::Exists, Vec::new());
    }
    let (token, literal) = lexer.next();
    let operator = match token {
        Token::In => Operator::In,
        Token::Equals => Operator::Equals,
        Token::DoubleEquals => Operator::DoubleEquals,
        Token::Greater => Operator::GreaterThan,
        Token::Less => Operator::LessThan,
        Token::NotIn => Operator::NotIn,
        Token::NotEquals => Operator::NotEquals,
        _ => {
            return Err(format!(
                "found '{literal}', expected: in, notin, =, ==, !=, gt, lt"
            ));
        }
    };
    let values = match operator {
        Operator::In | Operator::NotIn => value_set(lexer)?,
        _ => vec![single_value(lexer)?],
    };
    Requirement::new(key, operator, values)
}

fn single_value(lexer: &mut Lexer<'_>) -> Result<Box<str>, String> {
    if matches!(lexer.peek_value(), Token::End | Token::Comma) {
        return Ok("".into());
    }
    match lexer.next_value() {
        (Token::Word, literal) => Ok(literal.into()),
        (_, literal) => Err(format!("found '{literal}', expected: identifier")),
    }
}

/// `(a,b)`; an empty place between commas or parentheses is the empty value.
fn value_set(lexer: &mut Lexer<'_>) -> Result<Vec<Box<str>>, String> {
    let (token, literal) = lexer.next_value();
    if token != Token::Open {
        return Err(format!("found '{literal}' expected: '('"));
    }
    let mut values: Vec<Box<str>> = Vec::new();
    match lexer.peek_value() {
        Token::Word | Token::Comma => {}
        Token::Close => {
            lexer.next_value();
            return Ok(vec!["".into()]);
        }
        _ => {
            let literal = lexer.literal();
            return Err(format!(
                "found '{literal}', expected: ',', ')' or identifier"
            ));
        }
    }
    loop {
        match lexer.next_value() {
            (Token::Word, literal) => {
                values.push(literal.into());
                match lexer.peek_value() {
                    Token::Comma => {}
                    Token::Close => break,
                    _ => {
                        let literal = lexer.literal();
                        return Err(format!("found '{literal}', expected: ',' or ')'"));
                    }
                }
            }
            (Token::Comma, _) => {
                if values.is_empty() {
                    values.push("".into());
                }
                match lexer.peek_value() {
                    Token::Close => {
                        values.push("".into());
                        break;
                    }
                    Token::Comma => {
                        lexer.next_value();
                        values.push("".into());
                    }
                    _ => {}
                }
            }
            (_, literal) => {
                return Err(format!("found '{literal}', expected: ',', or identifier"));
            }
        }
    }
    lexer.next_value();
    Ok(values)
}

impl std::fmt::Display for LabelQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Requirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = &self.key;
        let values = self.values.join(",");
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}
