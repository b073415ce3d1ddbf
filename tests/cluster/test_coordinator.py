"""Barriers of workers, and errors that release them."""

import asyncio

from tartree.cluster.coordinator import Coordinator


def test_workers_wait_for_each_other():
    async def run():
        coordinator = Coordinator()
        first = asyncio.create_task(coordinator.wait("start", 2))
        await asyncio.sleep(0.01)
        assert not first.done()
        assert await coordinator.wait("start", 2)
        return await first

    assert asyncio.run(run())


def test_an_error_releases_the_barrier():
    async def run():
        coordinator = Coordinator()
        waiting = asyncio.create_task(coordinator.wait("start", 2))
        await asyncio.sleep(0.01)
        await coordinator.fail(ValueError("rows.parquet is damaged"))
        await coordinator.fail(ValueError("and this comes of it"))
        assert not await coordinator.wait("later", 2)
        return await waiting, await coordinator.outcome()

    is_complete, (error, result) = asyncio.run(run())
    assert not is_complete
    assert str(error) == "rows.parquet is damaged"
    assert result is None
