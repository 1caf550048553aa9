
-- sbatch, srun and salloc say what a job will cost: `slurm: {submit_estimate: true}`.
-- The prices are the agent's (tidegate/agent/price_file.py), in a line each: partition, instance type,
-- its GPUs, their type, CPUs, MiB of memory, USD an hour, and of GPUs that are shared shard or mps, and
-- how many of it each gives.

local PRICES = "/var/lib/tidegate/prices"
local OLD_S = 86400

-- Which part of a node pays who holds so much of it: the largest, as `tidegate cost --by` has it.
local function part(wanted, has)
    if wanted.is_whole then
        return 1
    end
    local found = math.max(wanted.cpus / has.cpus, wanted.memory / has.memory)
    local gpus = wanted.shared and wanted.shares / has.shares or wanted.gpus
    return has.gpus > 0 and math.max(found, gpus / has.gpus) or found
end

-- All shares are of one GPU; with --exclusive Slurm gives them only where the node has no other.
local function gives_shares(wanted, has)
    local is_one = has.gpus == 1 or not wanted.is_whole
    return has.shared == wanted.shared and has.shares >= wanted.shares and is_one
end

-- The cheapest node that could run it, as if nothing else ran there: what it pays of it, and its type.
local function cheapest(wanted, partitions)
    local best, best_type, lowest
    for line in io.lines(PRICES) do
        local at_s = string.match(line, "^at (%d+)")
        if at_s and os.time() - tonumber(at_s) > OLD_S then
            return nil
        end
        local where, type, count, kind, cpus, memory, usd, more = string.match(
            line, "^(%S+) (%S+) (%d+) (%S+) (%d+) (%d+) (%S+)(.*)$")
        if where and partitions[where] then
            local shared, per_gpu = string.match(more, "^ (%a+) (%d+)$")
            local has = { gpus = tonumber(count), cpus = tonumber(cpus), memory = tonumber(memory),
                shared = shared, shares = tonumber(per_gpu) or 0 }
            local fits = has.gpus >= wanted.gpus and has.cpus >= wanted.cpus
                and has.memory >= wanted.memory and (not wanted.kind or kind == wanted.kind)
                and (not wanted.shared or gives_shares(wanted, has))
            if fits and (not lowest or tonumber(usd) < lowest) then
                lowest, best_type = tonumber(usd), type
                best = lowest * part(wanted, has) * wanted.nodes
            end
        end
    end
    return best, best_type
end

local function estimate(job, part_list)
    local partitions = {}
    for name in string.gmatch(job.partition or "", "[^,]+") do
        partitions[name] = true
    end
    for name, each in pairs(job.partition and {} or part_list) do
        partitions[name] = each.flag_default ~= 0 or nil
    end
    local wanted = shape(job)
    local usd, type = cheapest(wanted, partitions)
    if not usd then
        return
    end
    local nodes = wanted.nodes > 1 and string.format("%d x ", wanted.nodes) or ""
    local said = string.format("about %.2f USD an hour on %s%s", usd, nodes, type)
    local minutes = given(job.time_limit)
    if minutes then
        said = said .. string.format("; at most %.2f USD until its time limit", usd * minutes / 60)
    end
    slurm.log_user("%s%s", said, job.array_inx and ", each task" or "")
end

steps[#steps + 1] = estimate
