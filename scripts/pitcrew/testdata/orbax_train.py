"""A training without a model, on real Orbax: it saves every 20 steps and when it is asked to by SIGTERM."""

import signal
import sys
import time

import numpy as np
import orbax.checkpoint as ocp

asked = False


def on_term(signum, frame):
    global asked
    asked = True


signal.signal(signal.SIGTERM, on_term)
options = ocp.CheckpointManagerOptions(save_interval_steps=20, max_to_keep=100)
with ocp.CheckpointManager(sys.argv[1], options=options) as manager:
    step = manager.latest_step() or 0
    print("began at", step, flush=True)
    while True:
        step += 1
        time.sleep(0.01)
        now, asked = asked, False
        manager.save(step, args=ocp.args.StandardSave({"w": np.full(8, step)}), force=now)
        if now:
            manager.wait_until_finished()
