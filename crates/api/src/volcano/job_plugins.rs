//! Plugins of jobs: which there are, what they need of one another, and how their arguments are read,
//! by whoever reviews a job and by whoever makes its pods.
//!
//! Source: `specs/volcano.md`, sections 2.1.7, 4.1 and 4.2; arguments are read as Go's `flag` reads them.

use std::borrow::Cow;

/// One plugin.
#[derive(Debug)]
pub struct JobPlugin {
    /// Its key in `spec.plugins`.
    pub name: &'static str,
    /// Plugins without which its pods do not find one another.
    pub implies: &'static [&'static str],
    /// Its arguments.
    arguments: &'static [Argument],
}

/// One argument.
#[derive(Debug)]
struct Argument {
    name: &'static str,
    form: Form,
}

/// What an argument's value is.
#[derive(Clone, Copy, Debug)]
enum Form {
    Text,
    Number,
    /// A number from 1 to 65535.
    Port,
    /// `true` where nothing is said; never takes the next word.
    Switch,
    /// The same, or after `=` a text.
    SwitchOrText,
}

/// What the arguments of a plugin come to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReadArguments<'a> {
    /// Those that count, in their order, each with its value: a number in decimals, a switch as `true` or
    /// `false`.
    pub given: Vec<(&'static str, Cow<'a, str>)>,
    /// Why nothing more was read.
    pub fault: Option<ArgumentFault<'a>>,
}

/// What ends the reading of arguments: neither it nor what follows it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentFault<'a> {
    /// A word that is no argument.
    Word(&'a str),
    /// There is no argument of this name.
    Unknown(&'a str),
    /// An argument without its value.
    Lacks(&'static str),
    /// An argument that cannot have this value.
    Value(&'static str, &'a str),
    /// An argument that wants a port, which this is not.
    Port(&'static str, &'a str),
}

const fn text(name: &'static str) -> Argument {
    let form = Form::Text;
    Argument { name, form }
}

const fn number(name: &'static str) -> Argument {
    let form = Form::Number;
    Argument { name, form }
}

const fn port(name: &'static str) -> Argument {
    let form = Form::Port;
    Argument { name, form }
}

const fn switch(name: &'static str) -> Argument {
    let form = Form::Switch;
    Argument { name, form }
}

const fn switch_or_text(name: &'static str) -> Argument {
    let form = Form::SwitchOrText;
    Argument { name, form }
}

const fn row(
    name: &'static str,
    implies: &'static [&'static str],
    arguments: &'static [Argument],
) -> JobPlugin {
    JobPlugin {
        name,
        implies,
        arguments,
    }
}

/// All of them, by name.
pub const JOB_PLUGINS: &[JobPlugin] = &[
    row("env", &[], &[]),
    row("hcclrank", &[], &[text("master"), text("worker")]),
    row(
        "mpi",
        &["svc", "ssh"],
        &[text("master"), text("worker"), port("port")],
    ),
    row(
        "pytorch",
        &["svc"],
        &[
            text("master"),
            text("worker"),
            port("port"),
            switch("wait-master-enabled"),
            number("wait-master-timeout"),
            text("wait-master-image"),
        ],
    ),
    row(
        "ray",
        &["svc"],
        &[
            text("head"),
            text("headContainer"),
            text("worker"),
            text("workerContainer"),
            port("port"),
            port("dashboardPort"),
            port("clientPort"),
        ],
    ),
    row(
        "ssh",
        &[],
        &[
            text("ssh-key-file-path"),
            text("ssh-private-key"),
            text("ssh-public-key"),
            port("ssh-port"),
            switch("disable-network-policy"),
            switch("host-keys"),
        ],
    ),
    row(
        "svc",
        &[],
        &[
            switch("publish-not-ready-addresses"),
            switch("disable-network-policy"),
            switch("inject-hosts-env"),
            switch("addresses"),
            switch_or_text("wait-for-peers"),
        ],
    ),
    row(
        "tensorflow",
        &["svc"],
        &[
            text("ps"),
            text("worker"),
            text("chief"),
            text("evaluator"),
            port("port"),
        ],
    ),
];

impl JobPlugin {
    /// The plugin of this name.
    pub fn find(name: &str) -> Option<&'static JobPlugin> {
        JOB_PLUGINS.iter().find(|plugin| plugin.name == name)
    }

    /// Reads `--name=value`, `--name value` and `--switch`, with one dash or two. The first word that is
    /// none of these, names no argument, or has a value that cannot be meant ends the reading.
    pub fn read<'a>(&self, words: &'a [Box<str>]) -> ReadArguments<'a> {
        let mut reading = ReadArguments::default();
        let mut words = words.iter().map(|word| &**word);
        while let Some(word) = words.next() {
            match self.argument(word, &mut words) {
                Ok(given) => reading.given.push(given),
                Err(fault) => {
                    reading.fault = Some(fault);
                    break;
                }
            }
        }
        reading
    }

    fn argument<'a>(
        &self,
        word: &'a str,
        rest: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(&'static str, Cow<'a, str>), ArgumentFault<'a>> {
        let flag = word.strip_prefix("--").or(word.strip_prefix('-'));
        let flag = flag.filter(|flag| !flag.is_empty() && !flag.starts_with(['-', '=']));
        let flag = flag.ok_or(ArgumentFault::Word(word))?;
        let (name, said) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let mut rows = self.arguments.iter();
        let row = rows.find(|row| row.name == name);
        let row = row.ok_or(ArgumentFault::Unknown(name))?;
        let value = match (row.form, said) {
            (Form::Switch | Form::SwitchOrText, None) => "true",
            (_, Some(value)) => value,
            (_, None) => rest.next().ok_or(ArgumentFault::Lacks(row.name))?,
        };
        let on = || is_on(value).map(|on| Cow::Borrowed(if on { "true" } else { "false" }));
        let meant = match row.form {
            Form::Text => Some(Cow::Borrowed(value)),
            Form::Number => whole(value).map(|number| Cow::Owned(number.to_string())),
            Form::Port => {
                let port = whole(value).filter(|port| (1..=65_535).contains(port));
                let port = port.ok_or(ArgumentFault::Port(row.name, value))?;
                Some(Cow::Owned(port.to_string()))
            }
            Form::Switch => on(),
            Form::SwitchOrText => on().or(Some(Cow::Borrowed(value))),
        };
        let meant = meant.ok_or(ArgumentFault::Value(row.name, value))?;
        Ok((row.name, meant))
    }
}

/// What Go takes for a truth.
fn is_on(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A whole number as Go reads it where its base is left to it: 10, 0x0a, 0o12, 012 and 0b1010 are ten.
fn whole(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, base) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (&*lower, 10),
    };
    let is_plain = digits.chars().all(|digit| digit.is_digit(base));
    let size = i64::from_str_radix(digits, base).ok();
    size.filter(|_| is_plain)?.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        plugin: &str,
        words: &[&str],
        given: &[(&'static str, &str)],
        fault: Option<ArgumentFault<'_>>,
    ) {
        let boxed: Vec<Box<str>> = words.iter().map(|word| (*word).into()).collect();
        let plugin = JobPlugin::find(plugin).expect("there is such a plugin");
        let given = given.iter().map(|(name, value)| (*name, (*value).into()));
        let wanted = ReadArguments {
            given: given.collect(),
            fault,
        };
        assert_eq!(plugin.read(&boxed), wanted, "{words:?}");
    }

    #[test]
    fn a_switch_never_takes_the_next_word_and_everything_else_always_does() {
        let open = "disable-network-policy";
        let fault = Some(ArgumentFault::Word("false"));
        check(
            "svc",
            &["--disable-network-policy", "false"],
            &[(open, "true")],
            fault,
        );
        check(
            "svc",
            &["-disable-network-policy=F"],
            &[(open, "false")],
            None,
        );
        check(
            "mpi",
            &["-master", "-t", "--port=0x16"],
            &[("master", "-t"), ("port", "22")],
            None,
        );
        let image = [("wait-for-peers", "a:1"), (open, "true")];
        check(
            "svc",
            &["--wait-for-peers=a:1", "--disable-network-policy"],
            &image,
            None,
        );
        check(
            "svc",
            &["--wait-for-peers=0"],
            &[("wait-for-peers", "false")],
            None,
        );
        check(
            "svc",
            &["--wait-for-peers"],
            &[("wait-for-peers", "true")],
            None,
        );
        check("mpi", &["--master="], &[("master", "")], None);
    }

    #[test]
    fn the_first_fault_ends_the_reading() {
        for (words, fault) in [
            (
                &["please", "--ssh-port=22"][..],
                ArgumentFault::Word("please"),
            ),
            (&["--", "--ssh-port=22"], ArgumentFault::Word("--")),
            (&["---ssh-port=22"], ArgumentFault::Word("---ssh-port=22")),
            (&["--sshport", "22"], ArgumentFault::Unknown("sshport")),
            (&["--ssh-port"], ArgumentFault::Lacks("ssh-port")),
            (
                &["--ssh-port=70000"],
                ArgumentFault::Port("ssh-port", "70000"),
            ),
            (
                &["--ssh-port", "ssh"],
                ArgumentFault::Port("ssh-port", "ssh"),
            ),
            (
                &["--host-keys=perhaps"],
                ArgumentFault::Value("host-keys", "perhaps"),
            ),
        ] {
            check("ssh", words, &[], Some(fault));
        }
        let given = [("ssh-port", "22")];
        check(
            "ssh",
            &["--ssh-port=22", "--x", "--ssh-port=23"],
            &given,
            Some(ArgumentFault::Unknown("x")),
        );
    }

    #[test]
    fn numbers_are_go_s() {
        for (text, number) in [
            ("10", Some(10)),
            ("0x0A", Some(10)),
            ("012", Some(10)),
            ("0b1010", Some(10)),
            ("-3", Some(-3)),
            ("0", Some(0)),
            ("", None),
            ("0x", None),
            ("+-1", None),
            ("9", Some(9)),
            ("09", None),
        ] {
            assert_eq!(whole(text), number, "{text}");
        }
    }

    #[test]
    fn plugins_stand_in_order() {
        assert!(JOB_PLUGINS.is_sorted_by_key(|plugin| plugin.name));
    }
}
