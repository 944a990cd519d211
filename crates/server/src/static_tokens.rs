//! Tokens from a file, one a line: `token,user,uid,"group,group"`, as kube-apiserver reads them.

use std::collections::HashMap;
use std::path::Path;

use ring::digest;
use store::User;

use crate::identity::IdentityError;

/// Who each token of a file speaks for.
#[derive(Debug, Default)]
pub struct StaticTokens {
    /// By digest, so that the time that a look-up takes says nothing about a token.
    users: HashMap<Vec<u8>, User>,
}

impl StaticTokens {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<StaticTokens, IdentityError> {
        let failed = |cause: Box<dyn std::error::Error + Send + Sync>| IdentityError {
            action: format!("read the token file {}", path.display()),
            cause,
        };
        let text = std::fs::read_to_string(path).map_err(|cause| failed(cause.into()))?;
        StaticTokens::parse(&text).map_err(|cause| failed(cause.into()))
    }

    /// Reads the text of such a file; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<StaticTokens, String> {
        let mut tokens = StaticTokens::default();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let cells = cells(line).ok_or_else(|| format!("line {}: an open quote", number + 1))?;
            let [token, name, uid, rest @ ..] = &cells[..] else {
                return Err(format!(
                    "line {}: token, user and uid are needed",
                    number + 1
                ));
            };
            if token.is_empty() || name.is_empty() {
                return Err(format!(
                    "line {}: token and user must not be empty",
                    number + 1
                ));
            }
            let listed = rest.first().map_or("", String::as_str);
            let mut groups: Vec<String> = listed
                .split(',')
                .map(|group| group.trim().to_owned())
                .filter(|group| !group.is_empty())
                .collect();
            groups.push("system:authenticated".to_owned());
            let user = User {
                name: name.clone(),
                groups,
                uid: uid.clone(),
                ..User::default()
            };
            tokens.users.insert(key(token), user);
        }
        Ok(tokens)
    }

    /// One more token.
    pub(crate) fn with(mut self, token: &str, user: User) -> StaticTokens {
        self.users.insert(key(token), user);
        self
    }

    /// Whom a token speaks for.
    pub(crate) fn user(&self, token: &str) -> Option<User> {
        self.users.get(&key(token)).cloned()
    }
}

fn key(token: &str) -> Vec<u8> {
    digest::digest(&digest::SHA256, token.as_bytes())
        .as_ref()
        .to_vec()
}

/// The cells of a line; a quoted one may hold commas, and a quote twice.
fn cells(line: &str) -> Option<Vec<String>> {
    let mut cells = Vec::new();
    let mut letters = line.trim_end_matches('\r').chars().peekable();
    loop {
        let mut cell = String::new();
        if letters.next_if_eq(&'"').is_none() {
            while let Some(letter) = letters.next_if(|letter| *letter != ',') {
                cell.push(letter);
            }
            cells.push(cell.trim().to_owned());
        } else {
            loop {
                let letter = letters.next()?;
                if letter == '"' && letters.next_if_eq(&'"').is_none() {
                    break;
                }
                cell.push(letter);
            }
            cells.push(cell);
        }
        match letters.next() {
            None => return Some(cells),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_users_and_groups() {
        let text = "one,alice,1,\"dev,ops\"\r\n\n# a remark\ntwo,bob,2\nthree,\"c\"\"d\",,solo\n";
        let tokens = StaticTokens::parse(text).expect("tokens");
        let alice = tokens.user("one").expect("alice");
        assert_eq!((alice.name.as_str(), alice.uid.as_str()), ("alice", "1"));
        assert_eq!(alice.groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(
            tokens.user("two").expect("bob").groups,
            ["system:authenticated"]
        );
        assert_eq!(tokens.user("three").expect("c").name, "c\"d");
        assert_eq!(tokens.user("on"), None);
        for (bad, why) in [
            ("a,b", "line 1: token, user and uid are needed"),
            ("\n,b,c", "line 2: token and user must not be empty"),
            ("a,\"b,c", "line 1: an open quote"),
        ] {
            assert_eq!(StaticTokens::parse(bad).expect_err(bad), why);
        }
    }
}
