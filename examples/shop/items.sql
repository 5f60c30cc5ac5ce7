CREATE TABLE items (id int PRIMARY KEY, order_id int, name text, price numeric);
INSERT INTO items SELECT i, (i - 1) / 20 + 1, 'item ' || i, i FROM generate_series(1, 2000) AS i;
