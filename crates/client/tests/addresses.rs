//! A server is found by its host and port alone, whoever names them.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose server cannot answer has failed"
)]

use api::kind::Kind;
use client::Cluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const LIST: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 47\r\n\r\n{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}";

/// A server that lists nothing, and its host and port.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"\r\n\r\n") {
                bytes.push(socket.read_u8().await.unwrap());
            }
            socket.write_all(LIST.as_bytes()).await.unwrap();
        }
    });
    address.to_string()
}

/// A connection by a kubeconfig that says so, and by what was said instead.
async fn cluster(server: &str, master: Option<&str>) -> Result<Cluster, String> {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users: [{{name: u, user: {{}}}}]\n"
    );
    let port = server.rsplit(':').next().unwrap();
    let name = format!("katmai-addresses-{}-{port}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    let cluster = Cluster::from_kubeconfig(Some(&path), master).await;
    std::fs::remove_file(&path).unwrap();
    cluster.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_host_with_a_port_is_where_a_server_is() {
    let server = server().await;
    for master in [None, Some(&*server)] {
        let cluster = cluster(&server, master).await.unwrap();
        let page = cluster.list(Kind::Pod, 0, "").await.unwrap();
        assert_eq!(page.revision, 5, "{master:?}");
    }
}

#[tokio::test]
async fn what_is_no_address_is_refused_before_anything_is_asked() {
    let refused = cluster("http://127.0.0.1:1", Some("/root/.kube/config")).await;
    let told = "cannot use the address of the API server: \"/root/.kube/config\" is neither a URL nor HOST:PORT";
    assert_eq!(refused.err().as_deref(), Some(told));
}
