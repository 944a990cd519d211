//! Writes are begun while the journal takes those before them, and fail with them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, mpsc};

use http_body_util::BodyExt;
use serde_json::{Value, json};
use server::{Api, Journal, JournalError, Start, TokenKeys};
use store::journal::{Change, Record};
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What an append is to do once it is let go.
enum Order {
    Keep,
    /// Keeps the records and says that it has not.
    FailAfterKeeping,
}

/// A journal in memory; while it is slow, each append waits for an order.
struct Slow {
    kept: Arc<Mutex<BTreeSet<String>>>,
    orders: Arc<Mutex<Option<mpsc::Receiver<Order>>>>,
}

impl Journal for Slow {
    fn load(
        &mut self,
        _: &mut dyn FnMut(u64, Option<Change>) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        Ok(())
    }

    fn append(&mut self, records: &[Vec<u8>]) -> Result<(), JournalError> {
        let order = match &*self.orders.lock().expect("nobody panicked") {
            Some(orders) => orders.recv().expect("an order"),
            None => Order::Keep,
        };
        let mut kept = self.kept.lock().expect("nobody panicked");
        for record in records {
            for change in Record::decode(record).expect("a record").changes {
                if &*change.resource == "/configmaps" {
                    let key = change.key.to_string();
                    match change.state {
                        Some(_) => kept.insert(key),
                        None => kept.remove(&key),
                    };
                }
            }
        }
        match order {
            Order::Keep => Ok(()),
            Order::FailAfterKeeping => Err(JournalError {
                action: "write".to_owned(),
                cause: "the disk is full".into(),
            }),
        }
    }

    fn recover(&mut self) -> Result<(), JournalError> {
        Ok(())
    }
}

struct World {
    api: Api,
    kept: Arc<Mutex<BTreeSet<String>>>,
    orders: Arc<Mutex<Option<mpsc::Receiver<Order>>>>,
}

impl World {
    fn new() -> World {
        let kept = Arc::<Mutex<BTreeSet<String>>>::default();
        let orders = Arc::<Mutex<Option<mpsc::Receiver<Order>>>>::default();
        let journal = Slow {
            kept: kept.clone(),
            orders: orders.clone(),
        };
        let start = Start {
            journal: Some(Box::new(journal)),
            reviewer: Arc::new(review::review),
            ..Start::default()
        };
        let api = Api::start(start, TokenKeys::make(0).expect("keys")).expect("a plane");
        kept.lock().expect("nobody panicked").clear();
        World { api, kept, orders }
    }

    /// From here on appends wait.
    fn slow_down(&self) -> mpsc::Sender<Order> {
        let (sender, receiver) = mpsc::channel();
        *self.orders.lock().expect("nobody panicked") = Some(receiver);
        sender
    }

    fn kept(&self) -> Vec<String> {
        let kept = self.kept.lock().expect("nobody panicked");
        kept.iter().cloned().collect()
    }

    /// The code and the body of an answer.
    fn create(&self, name: &str) -> impl Future<Output = (u16, Value)> + Send + 'static {
        let object = json!({"metadata": {"name": name}}).to_string();
        let request = http::Request::builder()
            .method("POST")
            .uri(MAPS)
            .header("content-type", "application/json")
            .body(http_body_util::Full::new(bytes::Bytes::from(object)))
            .expect("a request");
        let service = self.api.service();
        async move {
            let response = service.oneshot(request).await.expect("an answer");
            let code = response.status().as_u16();
            let body = response.into_body().collect().await.expect("a body");
            let value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
            (code, value)
        }
    }

    async fn names(&self) -> Vec<String> {
        let request = http::Request::get(MAPS)
            .body(http_body_util::Full::new(bytes::Bytes::new()))
            .expect("a request");
        let response = self.api.service().oneshot(request).await;
        let body = response.expect("an answer").into_body().collect().await;
        let list: Value =
            serde_json::from_slice(&body.expect("a body").to_bytes()).expect("a list");
        let items = list["items"].as_array().expect("items");
        items
            .iter()
            .filter_map(|item| item["metadata"]["name"].as_str())
            .filter(|name| *name != "kube-root-ca.crt")
            .map(str::to_owned)
            .collect()
    }

    /// Two writes: the journal has the first, the second has been begun behind it.
    async fn two_under_way(&self) -> [tokio::task::JoinHandle<(u16, Value)>; 2] {
        let first = tokio::spawn(self.create("first"));
        self.is_begun("first").await;
        let second = tokio::spawn(self.create("second"));
        self.is_begun("second").await;
        assert!(!first.is_finished() && !second.is_finished());
        assert_eq!(
            self.names().await,
            [""; 0],
            "nothing is seen before it is kept"
        );
        [first, second]
    }

    /// Another one of the name of what has been begun is refused, whatever the journal does.
    async fn is_begun(&self, name: &str) {
        // On this one thread, what was spawned before hands in its write first.
        tokio::task::yield_now().await;
        let (code, _) = self.create(name).await;
        assert_eq!(code, 409);
    }
}

#[tokio::test]
async fn a_write_is_begun_while_the_disk_takes_the_one_before() {
    let world = World::new();
    let orders = world.slow_down();
    let [first, second] = world.two_under_way().await;
    orders.send(Order::Keep).expect("the journal waits");
    orders.send(Order::Keep).expect("the journal waits");
    assert_eq!(first.await.expect("an answer").0, 201);
    assert_eq!(second.await.expect("an answer").0, 201);
    assert_eq!(world.names().await, ["first", "second"]);
    assert_eq!(world.kept(), ["default/first", "default/second"]);
}

#[tokio::test]
async fn what_was_begun_behind_a_write_that_was_not_kept_is_not_kept_either() {
    let world = World::new();
    let orders = world.slow_down();
    let [first, second] = world.two_under_way().await;
    orders
        .send(Order::FailAfterKeeping)
        .expect("the journal waits");
    for under_way in [first, second] {
        let (code, answer) = under_way.await.expect("an answer");
        assert_eq!(code, 503, "{answer}");
        let told = answer["message"].as_str().expect("a message");
        assert!(told.contains("the disk is full"), "{told}");
    }
    assert_eq!(world.names().await, [""; 0]);
    *world.orders.lock().expect("nobody panicked") = None;
    // It is tried again within a second.
    while world.create("third").await.0 == 503 {}
    assert_eq!(world.names().await, ["third"]);
    assert_eq!(
        world.kept(),
        ["default/third"],
        "what was kept of the first is set right"
    );
    assert_eq!(world.create("first").await.0, 201);
    assert_eq!(world.kept(), ["default/first", "default/third"]);
}
