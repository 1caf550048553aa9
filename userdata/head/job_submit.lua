-- slurmctld runs this at every submission, so it reads small files and asks nobody. What goes wrong in
-- it says nothing and changes nothing: from 23.02 on Slurm refuses a job over an error of the script.
-- Parts that the cluster file asks for stand between here and the end (userdata/submit.py).

-- A script of the site's own comes first, as if Slurm ran it: what it refuses is refused.
local SITE = "/etc/slurm/job_submit.site.lua"
local steps, their_submit, their_modify = {}, nil, nil
local site, fault = loadfile(SITE)
if site then
    local is_good, said = pcall(site)
    fault = not is_good and said or nil
    their_submit, their_modify = slurm_job_submit, slurm_job_modify
end
if fault and not string.find(fault, "No such file", 1, true) then
    slurm.log_error("%s: %s", SITE, fault)
end

-- Slurm's NO_VAL and INFINITE, of 16, 32 and 64 bits, end above this.
local function given(number)
    number = tonumber(number)
    if number and number >= 0 and number ~= 65534 and number < 4294967293 then
        return number
    end
    return nil
end

-- "gres:gpu:t4:2", "gres/gpu:2" and "gres/gpu=2" are GPUs; how many, and of which type.
local function gpus(text)
    for each in string.gmatch(text or "", "[^,]+") do
        local rest = string.match(each, "gpu(.*)$")
        if rest then
            return tonumber(string.match(rest, "(%d+)$")) or 1, string.match(rest, "^[:/](%a[%w_-]*)")
        end
    end
    return 0, nil
end

-- "gres/shard:2" and "gres:mps:l4:50" are parts of one GPU of a node: which, how many, of which type.
local function shares(text)
    for each in string.gmatch(text or "", "[^,]+") do
        local gres, rest = string.match(each, "(shard)(.*)$")
        if not gres then
            gres, rest = string.match(each, "(mps)(.*)$")
        end
        if gres then
            return gres, tonumber(string.match(rest, "(%d+)$")) or 1, string.match(rest, "^:(%a[%w_-]*)")
        end
    end
    return nil, 0, nil
end

local function shape(job)
    local nodes = math.max(given(job.min_nodes) or 1, 1)
    local tasks = given(job.num_tasks) or nodes
    local per_node, kind = gpus(job.tres_per_node)
    local in_all, kind_in_all = gpus(job.tres_per_job)
    local per_task, kind_of_task = gpus(job.tres_per_task)
    local shared, count, kind_shared = shares(job.tres_per_node)
    local cpus = math.max(given(job.min_cpus) or 1, tasks * (given(job.cpus_per_task) or 1))
    local wanted = {
        nodes = nodes,
        gpus = math.max(per_node, math.ceil(in_all / nodes), math.ceil(per_task * tasks / nodes)),
        kind = kind or kind_in_all or kind_of_task or kind_shared,
        shared = shared,
        shares = count,
        cpus = math.ceil(cpus / nodes),
        memory = given(job.min_mem_per_node),
        is_whole = tonumber(job.shared) == 0,
    }
    local per_cpu = given(job.min_mem_per_cpu)
    wanted.memory = wanted.memory or (per_cpu and per_cpu * wanted.cpus) or 0
    return wanted
end
