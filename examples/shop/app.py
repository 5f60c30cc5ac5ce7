"""The application: an order page asks the database for each of its items, one by one."""

import http.server
import time

import pg8000.native

database = None


def connection():
    global database
    while database is None:
        try:
            database = pg8000.native.Connection("shop", host="db", database="postgres")
        except pg8000.exceptions.InterfaceError:
            time.sleep(0.05)
    return database


class Application(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        order = int(self.path.rsplit("/", 1)[-1])
        items = connection().run("SELECT id FROM items WHERE order_id = :order", order=order)
        lines = [
            connection().run("SELECT name, price FROM items WHERE id = :id", id=id)[0]
            for (id,) in items
        ]
        page = "".join(f"{name}: {price}\n" for name, price in lines).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("", 8000), Application).serve_forever()
