//! The door to a loop that is played here.

use std::sync::Arc;
use std::time::Duration;

use api::ask::Subject;
use api::kind::Kind;
use client::ask::{AskDoor, Asker, Unanswered};
use driver::explain;
use futures::future::{BoxFuture, join_all};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Answered, Came, EngineDoor, Question, REST, WAITING_MAX};

struct Somebody(String);

impl Asker for Somebody {
    fn name(&self) -> &str {
        &self.0
    }

    fn sees<'a>(&'a self, _: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(true))
    }

    fn sees_nodes(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(true))
    }
}

type Asked = BoxFuture<'static, Result<api::ask::Report, Unanswered>>;

fn ask(door: &EngineDoor, name: &str) -> Asked {
    let subject = Subject {
        kind: Kind::Pod,
        namespace: "default".to_owned(),
        name: "web".to_owned(),
    };
    door.explain(subject, Arc::new(Somebody(name.to_owned())))
}

async fn question(questions: &mut mpsc::Receiver<Came>) -> Question {
    match questions.recv().await {
        Some(Came::Question(question)) => question,
        _ => panic!("a question was asked"),
    }
}

fn answer(question: Question, why: explain::Unanswered, took: Duration) {
    let found = Err(why);
    // Whoever asked may have gone.
    let _ = question.answer.send(Answered { found, took });
}

#[tokio::test]
async fn what_is_not_answered_is_told_apart() {
    let (came, mut questions) = mpsc::channel(1);
    let door = EngineDoor::new(came);
    for (why, is_nothing) in [
        (explain::Unanswered::Unknown, true),
        (explain::Unanswered::NoGroup, true),
        (explain::Unanswered::NotReady, false),
    ] {
        let asked = tokio::spawn(ask(&door, "ann"));
        answer(question(&mut questions).await, why, Duration::ZERO);
        let told = asked.await.expect("it ends");
        let told = told.expect_err("there is no report");
        assert_eq!(matches!(told, Unanswered::Nothing(_)), is_nothing, "{told}");
        assert_eq!(told.to_string(), why.to_string());
    }
    drop(questions);
    let ended = ask(&door, "ann").await.expect_err("nobody is there");
    assert_eq!(ended.to_string(), "the scheduler has ended");
}

#[tokio::test]
async fn the_next_question_rests_even_if_nobody_waits_for_the_first() {
    let (came, mut questions) = mpsc::channel(1);
    let door = EngineDoor::new(came);
    let took = Duration::from_millis(20);
    let began = Instant::now();
    let first = tokio::spawn(ask(&door, "ann"));
    let asked = question(&mut questions).await;
    first.abort();
    let second = tokio::spawn(ask(&door, "bob"));
    answer(asked, explain::Unanswered::Unknown, took);
    let asked = question(&mut questions).await;
    assert!(began.elapsed() >= took * REST, "{:?}", began.elapsed());
    answer(asked, explain::Unanswered::Unknown, took);
    assert!(second.await.expect("it ends").is_err());
}

#[tokio::test]
async fn so_many_may_wait_and_no_more() {
    let (came, mut questions) = mpsc::channel(1);
    let door = EngineDoor::new(came);
    let askers = (0..WAITING_MAX).map(|at| tokio::spawn(ask(&door, &format!("asker {at}"))));
    let askers: Vec<_> = askers.collect();
    // The first one is asked, the others stand behind it.
    let first = question(&mut questions).await;
    tokio::task::yield_now().await;
    let refused = ask(&door, "one more")
        .await
        .expect_err("it is one too many");
    assert!(matches!(refused, Unanswered::TooMany { .. }), "{refused}");
    drop(first);
    drop(questions);
    for ended in join_all(askers).await {
        let why = ended.expect("it ends").expect_err("the loop has ended");
        assert!(matches!(why, Unanswered::NotReady(_)), "{why}");
    }
}
