"""Where workers meet: all of them, or word of the one that failed."""

import asyncio

from tartree.cluster.board import Board


def test_workers_wait_for_each_other():
    async def play():
        board = Board()
        first = asyncio.create_task(board.meet("start", 2))
        await asyncio.sleep(0.01)
        assert not first.done()
        assert await board.meet("start", 2)
        return await first

    assert asyncio.run(play())


def test_one_that_fails_is_not_waited_for():
    async def play():
        board = Board()
        waiting = asyncio.create_task(board.meet("start", 2))
        await asyncio.sleep(0.01)
        await board.fail(ValueError("rows.parquet is damaged"))
        await board.fail(ValueError("and this comes of it"))
        assert not await board.meet("later", 2)
        return await waiting, await board.outcome()

    together, (error, result) = asyncio.run(play())
    assert not together
    assert str(error) == "rows.parquet is damaged"
    assert result is None
